//go:build linux || darwin

package holder

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/session/driver"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// TestMain makes the test's executable a holder if Start runs it, as a daemon's
// executable.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == spawn.Command:
		if err := Main(slog.New(slog.DiscardHandler), "test", ""); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) > 2 && os.Args[1] == pam.OpenCommand:
		openStuck(os.Args[2])
	case os.Getenv(dialEnv) != "":
		dialAsChild(os.Getenv(dialEnv))
		os.Exit(0)
	}
	// As in Main: programs get these signals even if this process started with them
	// ignored.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(m.Run())
}

// A world is a holder with its program and its socket.
type world struct {
	compression driver.Compression // of the clients that join
	t           testing.TB
	h           *Holder
	log         *logbook
	program     *programtest.Stub // nil if it is a real one
	socket      *socket.Socket    // nil if there is none
	path        string            // of the socket
	timeout     time.Duration
	memory      func() (memory.State, error) // of the machine, or nil
	bubble      bool                         // on virtual time

	instances int // of clients
	wg        sync.WaitGroup
}

// inBubble calls f with the holder of a stub, on virtual time.
func inBubble(t *testing.T, launch wire.Launch, f func(w *world)) { onMachine(t, launch, nil, f) }

// onMachine is inBubble on a machine with a memory.
func onMachine(t *testing.T, launch wire.Launch, memory func() (memory.State, error), f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, log: new(logbook), program: programtest.NewStub(launch.PTY), timeout: 1000 * time.Hour, memory: memory, bubble: true}
		w.program.Resize(launch.Size)
		w.start(launch, w.program)
		defer w.end()
		f(w)
	})
}

// start runs a holder.
func (w *world) start(launch wire.Launch, p Program) {
	if launch.ID == (wire.SessionID{}) {
		launch.ID = wire.SessionID{1, 2, 3}
	}
	if launch.Name == "" {
		launch.Name = "world"
	}
	if launch.ExitedTTL == 0 {
		launch.ExitedTTL = 24 * time.Hour
	}
	if launch.PipeTTL == 0 {
		launch.PipeTTL = time.Hour
	}
	w.h = New(launch, p, w.log.logger())
	w.h.pressure.read = w.memory
	w.wg.Go(func() {
		w.h.Run()
		w.h.Forget()
	})
}

// end ends the session, and blocks until none of its goroutines is left.
func (w *world) end() {
	if w.program != nil {
		w.program.End(0)
	}
	w.locked(func(h *Holder) { h.finishLocked("the test is over") })
	if w.socket != nil {
		w.socket.Close()
	}
	w.wg.Wait()
}

// settle blocks, on virtual time, until what was done has had all of its effects at this
// instant. Without it, the order of the effects of two steps is left to chance.
func (w *world) settle() {
	if w.bubble {
		synctest.Wait()
	}
}

// locked calls f with the holder's gate locked.
func (w *world) locked(f func(h *Holder)) {
	w.h.gate.Lock()
	defer w.h.gate.Unlock()
	f(w.h)
}

// over reports whether the session is over.
func (w *world) over() bool {
	select {
	case <-w.h.end:
		return true
	default:
		return false
	}
}

// ask sends a request to the holder, as a daemon does.
func (w *world) ask(open *wire.Open, request wire.Body) (wire.Message, carrier.Carrier) {
	w.t.Helper()
	m, err := wire.New(request)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.path != "" {
		answer, c, err := socket.Carry(w.t.Context(), w.path, uint32(os.Geteuid()), open, m, true)
		if err != nil {
			w.t.Fatal(err)
		}
		return answer, c
	}
	answer, carry, err := w.h.Handle(open, m)
	if err != nil {
		w.t.Fatal(err)
	}
	if carry == nil {
		return answer, nil
	}
	ours, theirs := carriertest.Pair()
	w.wg.Go(func() { carry(theirs) })
	return answer, ours
}

// want decodes an answer, which must be of the type of v.
func (w *world) want(why string, m wire.Message, v wire.Body) {
	w.t.Helper()
	if err := m.Decode(v); err != nil {
		w.t.Fatalf("%s: %v", why, err)
	}
}

// state returns the description of the session.
func (w *world) state() (s wire.State, info wire.Info) {
	w.t.Helper()
	m, c := w.ask(&wire.Open{}, &wire.Query{})
	if c != nil {
		c.Close()
	}
	w.want("query", m, &s)
	info, err := wire.DecodeInfo(s.Info)
	if err != nil {
		w.t.Fatal(err)
	}
	return s, info
}

// print makes the program print. It returns when the holder has read all of it.
func (w *world) print(s string) {
	if _, err := w.program.Out.Write([]byte(s)); err != nil {
		w.t.Errorf("the program cannot print: %v", err)
	}
	synctest.Wait()
}

// printing makes the program print in the background. The function that it returns reports
// whether the holder has read all of it.
func (w *world) printing(s string) (done func() bool) {
	finished := make(chan struct{})
	w.wg.Go(func() {
		defer close(finished)
		w.program.Out.Write([]byte(s))
	})
	return func() bool {
		synctest.Wait()
		select {
		case <-finished:
			return true
		default:
			return false
		}
	}
}

// lines returns numbered lines, at least n bytes of them.
func lines(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d of what the program prints\n", i)
	}
	return b.String()
}

func mustEncode(t testing.TB, v wire.Body) wire.Message {
	t.Helper()
	m, err := wire.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// await waits until something is so that nothing tells of.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	for until := time.Now().Add(w.timeout); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("waited in vain for %s", what)
		}
	}
}
