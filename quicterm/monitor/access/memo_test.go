//go:build linux || darwin

package access

import (
	"crypto/sha256"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The latest maxMemo events at least are known, to the next daemon as well, and a file of any content
// does no harm.
func TestMemo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events")
	log := slog.New(slog.DiscardHandler)
	event := func(i int) [sha256.Size]byte { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(i))) }
	at := time.Unix(1_900_000_000, 0)
	var m Memo
	m.Load(file, log)
	const events = 2*maxMemo + 10
	for i := range events {
		if !m.Add(event(i), at) || m.Add(event(i), at) {
			t.Fatalf("event %d is not new exactly once", i)
		}
	}
	var next Memo
	next.Load(file, log)
	for _, m := range []*Memo{&m, &next} {
		for i := events - maxMemo; i < events; i++ {
			if got := m.At(event(i)); !got.Equal(at) {
				t.Fatalf("event %d was at %v, want %v", i, got, at)
			}
		}
		if got := m.At(event(0)); !got.IsZero() {
			t.Errorf("the first one of too many is known: %v", got)
		}
		if n := len(m.recent) + len(m.old); n > 2*maxMemo {
			t.Errorf("%d events are kept", n)
		}
	}
	for _, size := range []int{0, 1, memoEntrySize - 1, memoEntrySize + 1, 3 * maxMemo * memoEntrySize} {
		if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		var m Memo
		m.Load(file, log)
		if !m.Add(event(-1), at) || len(m.recent) > maxMemo {
			t.Errorf("of %d bytes, %d events", size, len(m.recent))
		}
	}
	lost := Memo{}
	lost.Load(filepath.Join(file, "none"), log)
	if !lost.Add(event(1), at) || lost.Add(event(1), at) {
		t.Error("without its file, an event is not new exactly once")
	}
}
