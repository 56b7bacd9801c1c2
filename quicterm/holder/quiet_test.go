//go:build linux || darwin

package holder

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/program"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A starved is a program whose output is read late, as on a machine that has no processor
// for the reader.
type starved struct {
	Program
	delay time.Duration
}

func (p starved) Stdout() io.ReadCloser { return lateReader{p.Program.Stdout(), p.delay} }

type lateReader struct {
	io.ReadCloser
	delay time.Duration
}

func (r lateReader) Read(p []byte) (int, error) {
	time.Sleep(r.delay)
	n, err := r.ReadCloser.Read(p)
	time.Sleep(r.delay)
	return n, err
}

// All output of a program is before its Exit, however late it is read: the kernel has it
// before, and the reader in between.
func TestLastOutputReadLate(t *testing.T) {
	launch := shell(t, true, "sleep 1000 & echo last words")
	p, err := program.Start(&launch, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, log: new(logbook), timeout: 20 * time.Second}
	w.start(launch, starved{p, 3 * quietTime})
	t.Cleanup(func() {
		p.Hangup(syscall.SIGKILL)
		w.end()
	})
	a := w.attach("a@x")
	if got := a.awaitExit(); got != 0 || !strings.Contains(a.output(), "last words\r\n") {
		t.Errorf("status %d behind %q", got, a.output())
	}
}

// The same, for as long as it takes.
func TestLastOutputReadVeryLate(t *testing.T) {
	inBubble(t, wire.Launch{PTY: true}, func(w *world) {
		a := w.attach("a@x")
		w.program.Starve(true)
		w.program.Exit(5)
		time.Sleep(10 * maxDrain)
		if synctest.Wait(); len(a.frames) > 0 {
			t.Fatalf("%+v before the last output was read", a.frames)
		}
		w.print("last words")
		w.program.Starve(false)
		if got := a.awaitExit(); got != 5 || a.output() != "last words" {
			t.Errorf("status %d behind %q", got, a.output())
		}
	})
}

// Another process that floods the terminal does not keep the session: all that the program
// has printed was before that.
func TestFloodBehindEnd(t *testing.T) {
	w := running(t, shell(t, true, "yes flood & echo last words; kill -9 $$"))
	a := w.attach("a@x")
	if got := a.awaitExit(); got != 137 || !strings.Contains(a.output(), "last words\r\n") {
		t.Errorf("status %d behind %d bytes", got, len(a.output()))
	}
}
