package terminal

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A key is drawn before it is sent. If the terminal takes no output, or part of what is drawn, the key
// goes to the session all the same, and nothing of the drawing is lost.
func TestPaintAtOnce(t *testing.T) {
	for _, room := range []int{1 << 10, 5, 0} { // in the pipe that is the terminal
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4<<10); err != nil {
			t.Fatal(err)
		}
		d := newDisplay(w, Config{})
		d.begin(wire.Size{Cols: 80, Rows: 24}, true, nil)
		d.endReplay()
		way := openDirect(w)
		if way == nil {
			t.Skip("there is no /proc")
		}
		d.predict(&oneKey{}, predict.Always, func() time.Duration { return 0 }, func() {}, way)

		for way.write([]byte(strings.Repeat("x", 4<<10))) > 0 {
		}
		for way.write([]byte("x")) > 0 {
		}
		var got bytes.Buffer
		if room > 0 {
			// A pipe has room in whole pages. All but room bytes of one are filled again.
			if _, err := io.CopyN(&got, r, 4<<10); err != nil {
				t.Fatal(err)
			}
			way.write([]byte(strings.Repeat("x", 4<<10-room)))
		}
		got.Reset()
		before := inPipe(t, r)
		typeKeys(d, []byte("k"), 1)
		want := "\x1b[?2026hk\x1b[?2026l"
		if n := inPipe(t, r) - before; room > len(want) && n != len(want) {
			t.Errorf("room for %d bytes: %d are drawn before it is sent, want %d", room, n, len(want))
		}
		done := make(chan error, 1)
		go func() {
			b := make([]byte, 1)
			for !bytes.HasSuffix(got.Bytes(), []byte(want)) {
				if _, err := r.Read(b); err != nil {
					done <- err
					return
				}
				got.Write(b)
			}
			done <- nil
		}()
		select {
		case err := <-done:
			text := got.String()
			if text = text[strings.LastIndex(text, "x")+1:]; err != nil || text != want {
				t.Errorf("room for %d bytes: drawn %q, want %q, %v", room, text, want, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("room for %d bytes: the key is not drawn", room)
		}
		go io.Copy(io.Discard, r)
		d.restore(false)
		w.Close()
		r.Close()
	}
}

// inPipe returns how many bytes are in a pipe.
func inPipe(t *testing.T, r *os.File) int {
	t.Helper()
	n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Only the same terminal is taken for a direct way: its name may have come to stand for another one.
func TestSameTerminal(t *testing.T) {
	var ttys [2]*os.File
	for i := range ttys {
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer tty.Close()
		ttys[i] = tty
	}
	way := openDirect(ttys[0])
	if way == nil {
		t.Skip("there is no /proc")
	}
	defer way.close()
	if !same(way.fd, int(ttys[0].Fd())) {
		t.Error("a terminal is not the same as itself")
	}
	if same(way.fd, int(ttys[1].Fd())) {
		t.Error("two terminals are the same")
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if way := openDirect(null); way != nil {
		t.Error("a device that is no terminal is taken for one")
		way.close()
	}
}
