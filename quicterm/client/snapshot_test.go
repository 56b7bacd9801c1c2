//go:build linux || darwin

package client

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Snapshots and sizes come to the streams in their places. The snapshot at an attach is no loss.
func TestSnapshotsAndSizes(t *testing.T) {
	owner := uint64(0)
	gap := func(from, to uint64, snapshot string) session.Delivered {
		g := session.Gap{From: from, To: to, Bytes: to}
		if snapshot != "" {
			g.Snapshot = wire.Snapshot{Sizing: wire.Sizing{Size: wire.Size{Cols: 90, Rows: 30}, Owner: owner}, Screen: []byte(snapshot)}.Append(nil)
		}
		return session.Delivered{Gap: &g}
	}
	frame := func(typ buffer.Type, payload []byte) session.Delivered {
		return session.Delivered{Frame: buffer.Frame{Type: typ, Payload: payload}}
	}
	size := frame(wire.Resize, wire.Sizing{Size: wire.Size{Cols: 80, Rows: 24}}.Append(nil))
	owner = 2
	other := gap(2, 3, "vim")
	owner = 0
	for _, test := range []struct {
		why    string
		begins bool
		batch  []session.Delivered
		want   []string
	}{
		{"attached", true, []session.Delivered{gap(1, 3, "vim"), frame(wire.Stdout, []byte("a")), gap(5, 6, "less")},
			[]string{"90x30", "began vim", "a", "90x30", "lost 5-6 less"}},
		{"attached to a server without snapshots", true, []session.Delivered{gap(1, 3, ""), gap(5, 6, "less")},
			[]string{"lost 1-3 ", "90x30", "lost 5-6 less"}},
		{"a new session", false, []session.Delivered{gap(1, 3, "vim")}, []string{"90x30", "lost 1-3 vim"}},
		{"a size first", true, []session.Delivered{size, gap(2, 3, "vim")}, []string{"80x24", "90x30", "lost 2-3 vim"}},
		{"a size that another client gave", false, []session.Delivered{size, other}, []string{"80x24", "90x30", "began vim"}},
		{"a size that makes no sense", true, []session.Delivered{frame(wire.Resize, []byte{1})}, nil},
		{"a loss for a sharer, before a size", false, []session.Delivered{gap(8, 9, "vim")}, []string{"90x30", "lost 8-9 vim"}},
	} {
		var got []string
		attached := wire.Attached{PTY: true}
		if strings.Contains(test.why, "sharer") {
			attached.Number, attached.Owner, attached.Size = 7, 1, wire.Size{Cols: 90, Rows: 30}
		}
		s := &Session{begins: test.begins, attached: attached, streams: Streams{
			Stdout: writerFunc(func(b []byte) (int, error) {
				got = append(got, string(b))
				return len(b), nil
			}),
			Began:   func(b []byte) { got = append(got, "began "+string(b)) },
			Lost:    func(g Gap) { got = append(got, fmt.Sprintf("lost %d-%d %s", g.From, g.To, g.Snapshot)) },
			Resized: func(size wire.Sizing) { got = append(got, fmt.Sprintf("%dx%d", size.Cols, size.Rows)) },
		}}
		for batch := test.batch; len(batch) > 0; {
			batch = batch[s.write(batch):]
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}
