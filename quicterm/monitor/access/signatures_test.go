//go:build linux || darwin

package access

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A signer makes statements for signatures, without a monitor. Its clock is that of the client.
type signer struct {
	t          *testing.T
	s          *Signatures
	file       string
	connection uint64
}

func newSigner(t *testing.T) *signer {
	h := &signer{t: t, file: filepath.Join(t.TempDir(), "signed_until")}
	h.restart()
	return h
}

func (h *signer) restart() {
	h.s = LoadSignatures(h.file, time.Unix(1_900_000_000, 0), slog.New(slog.DiscardHandler))
}

// new returns a statement of a new connection.
func (h *signer) new(at []byte) *auth.Statement {
	h.connection++
	return &auth.Statement{Time: at, Exporter: exporterOf(h.connection)}
}

// want checks whether an account is let in.
func (h *signer) want(why string, uid uint32, s *auth.Statement, now time.Time, uptime time.Duration, want error) {
	h.t.Helper()
	if err := h.s.Accept(uid, s, now, uptime); !errors.Is(err, want) {
		h.t.Errorf("%s: got %v, want %v", why, err, want)
	}
}

// No clock and no restart makes a signature good twice, and none keeps a client out that signs the time
// of an Offer.
func TestSignaturesAndClocks(t *testing.T) {
	begun := time.Unix(1_900_000_000, 0)
	at := func(s int) (time.Time, time.Duration) {
		return begun.Add(time.Duration(s) * time.Second), time.Duration(s) * time.Second
	}
	h := newSigner(t)
	used := make(map[int]*auth.Statement)
	for s := -120; s <= 120; s += 60 {
		wall, up := at(0)
		client, _ := at(s)
		used[s] = h.new(auth.ClientTime(client))
		h.want("within the window", 1, used[s], wall, up, nil)
	}
	for _, s := range []int{-121, 121} {
		wall, up := at(0)
		client, _ := at(s)
		h.want("outside the window", 1, h.new(auth.ClientTime(client)), wall, up, ErrSignedTime)
	}
	again := func(why string, wall time.Time, up time.Duration) {
		t.Helper()
		for s, one := range used {
			if err := h.s.Accept(1, one, wall, up); err == nil {
				t.Errorf("%s: the signature of %d s is good again", why, s)
			}
		}
	}
	for s := 0; s < 2000; s += 7 { // time passes, with logins of others
		wall, up := at(s)
		again("later", wall, up)
		h.want("another one", 1, h.new(auth.ClientTime(wall)), wall, up, nil)
	}
	_, up := at(2000)
	for s := 2000; s > -1000; s -= 50 { // the clock is set back
		wall, _ := at(s)
		again("after the clock was set back", wall, up)
		told := h.s.Offer(wall, up)
		statement := h.new(auth.ServerTime(told))
		h.want("by the time of the Offer", 1, statement, wall, up, nil)
		h.want("by it twice", 1, statement, wall, up, ErrSignedTwice)
		up += 10 * time.Second
	}
	old := h.new(auth.ServerTime(h.s.Offer(begun, up)))
	late := h.new(old.Time)
	h.want("an Offer of two minutes ago", 1, old, begun, up+signedWindow, nil)
	h.want("an older Offer", 1, late, begun, up+signedWindow+1, ErrSignedTime)
	changed := bytes.Clone(old.Time)
	changed[9]++
	h.want("another time than the Offer's", 1, h.new(changed), begun, up, ErrSignedTime)

	h = newSigner(t)
	wall, up := at(0)
	ahead, _ := at(100)
	used = map[int]*auth.Statement{0: h.new(auth.ClientTime(wall)), 1: h.new(auth.ClientTime(ahead)), 2: h.new(auth.ServerTime(h.s.Offer(wall, up)))}
	for _, one := range used {
		h.want("before the restart", 1, one, wall, up, nil)
	}
	h.restart()
	for s := -500; s < 1000; s += 10 {
		wall, up := at(s)
		again("after a restart", wall, up)
	}
	wall, up = at(int((100*time.Second + signedStep + time.Second) / time.Second))
	h.want("a client's time after a restart", 1, h.new(auth.ClientTime(wall)), wall, up, nil)
}

// A daemon that cannot keep until when it has accepted signatures lets clients in by its own time only.
func TestSignaturesWithoutFile(t *testing.T) {
	h := newSigner(t)
	h.file = filepath.Join(t.TempDir(), "none", "file")
	h.restart()
	begun := time.Unix(1_900_000_000, 0)
	h.want("a client's time", 1, h.new(auth.ClientTime(begun)), begun, 0, ErrSignedTime)
	h.want("the time of an Offer", 1, h.new(auth.ServerTime(h.s.Offer(begun, 0))), begun, 0, nil)
	for _, content := range [][]byte{nil, {1}, make([]byte, 9)} {
		h := newSigner(t)
		if err := os.WriteFile(h.file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		h.restart()
		h.want("a client's time", 1, h.new(auth.ClientTime(begun)), begun, 0, ErrSignedTime)
	}
}

// An account has so many signatures that are kept, which take little memory. Those above it are refused
// until the oldest are forgotten; other accounts are let in.
func TestTooManySignatures(t *testing.T) {
	h := newSigner(t)
	begun := time.Unix(1_900_000_000, 0)
	before := heap()
	first := h.new(auth.ClientTime(begun))
	h.want("the first", 1, first, begun, 0, nil)
	for range maxSigned - 1 {
		h.want("one of many", 1, h.new(auth.ClientTime(begun)), begun, 0, nil)
	}
	if took := heap() - before; took > 64*maxSigned {
		t.Errorf("%d signatures take %d bytes", maxSigned, took)
	}
	for _, up := range []time.Duration{0, keptWindow - 1, keptWindow, 2*keptWindow - 1} {
		now := begun.Add(up)
		err := h.s.Accept(1, h.new(auth.ClientTime(now)), now, up)
		if told := new(wire.Error); !errors.As(err, &told) || !strings.Contains(told.Text, "too many logins") || !strings.Contains(told.Text, "try again in") {
			t.Errorf("one too many after %v: %v", up, err)
		}
		h.want("another account", 2, h.new(auth.ClientTime(now)), now, up, nil)
	}
	now := begun.Add(2 * keptWindow)
	h.want("the first again", 1, first, now, 2*keptWindow, ErrSignedTime)
	h.want("when the oldest are forgotten", 1, h.new(auth.ClientTime(now)), now, 2*keptWindow, nil)
	runtime.KeepAlive(h)
}

// exporterOf returns what the two ends of a connection with a number derive from its keys.
func exporterOf(connection uint64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, connection), make([]byte, auth.ExporterSize-8)...)
}

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
