//go:build linux || darwin

package holder

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/pump"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// TestMain lets the test's own executable be a holder, as a daemon's is.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == Command:
		if err := Main(slog.New(slog.DiscardHandler)); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv(dialEnv) != "":
		dialAsChild(os.Getenv(dialEnv))
		os.Exit(0)
	}
	// As in Main: programs get what whoever started the tests ignores.
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(m.Run())
}

// A logbook has what a holder logs.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lines returns the lines with all of some words.
func (l *logbook) lines(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for line := range strings.Lines(l.buf.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			found = append(found, line)
		}
	}
	return found
}

// clear forgets all that was logged.
func (l *logbook) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
}

// A stub is a program whose part is played by the test.
type stub struct {
	pty      bool
	in       *io.PipeReader // what the program is given
	out, err *io.PipeWriter // what it prints
	stdin    *io.PipeWriter
	stdout   *io.PipeReader
	stderr   *io.PipeReader
	status   chan byte
	stubborn bool // signals do not end it

	mu      sync.Mutex
	size    session.Size
	signals []syscall.Signal
}

func newStub(pty bool) *stub {
	p := &stub{pty: pty, status: make(chan byte, 1)}
	p.in, p.stdin = io.Pipe()
	p.stdout, p.out = io.Pipe()
	p.stderr, p.err = io.Pipe()
	return p
}

func (p *stub) Terminal() bool        { return p.pty }
func (p *stub) Stdin() io.WriteCloser { return p.stdin }
func (p *stub) Stdout() io.ReadCloser { return p.stdout }
func (p *stub) Stderr() io.ReadCloser { return p.stderr }
func (p *stub) Wait() byte            { return <-p.status }
func (p *stub) Close()                { p.in.Close(); p.stdout.Close(); p.stderr.Close() }

func (p *stub) Resize(s session.Size) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.size = s
	return nil
}

func (p *stub) Size() session.Size {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size
}

func (p *stub) Signal(sig syscall.Signal) {
	p.mu.Lock()
	p.signals = append(p.signals, sig)
	p.mu.Unlock()
	if !p.stubborn {
		p.end(byte(128 + int(sig)))
	}
}

func (p *stub) Hangup(sig syscall.Signal) { p.Signal(sig) }

// got returns the signals that were sent to the program.
func (p *stub) got() []syscall.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.signals)
}

// end ends the program.
func (p *stub) end(status byte) {
	p.out.Close()
	p.err.Close()
	select {
	case p.status <- status:
	default: // it has ended already
	}
}

// A world is a holder with what is around it.
type world struct {
	t        testing.TB
	h        *Holder
	log      *logbook
	program  *stub   // nil if it is a real one
	socket   *Socket // nil if there is none
	path     string  // of the socket
	patience time.Duration
	wg       sync.WaitGroup
}

// inBubble calls f with a holder of a stub, on virtual time.
func inBubble(t *testing.T, spec wire.Spec, f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, log: new(logbook), program: newStub(spec.PTY), patience: 1000 * time.Hour}
		w.start(spec, w.program)
		defer w.end()
		f(w)
	})
}

// start keeps a session with a program.
func (w *world) start(spec wire.Spec, p Program) {
	if spec.ID == (wire.SessionID{}) {
		spec.ID = wire.SessionID{1, 2, 3}
	}
	if spec.Name == "" {
		spec.Name = "world"
	}
	if spec.ExitedTTL == 0 {
		spec.ExitedTTL = 24 * time.Hour
	}
	if spec.PipeTTL == 0 {
		spec.PipeTTL = time.Hour
	}
	w.h = New(spec, p, w.log.logger())
	w.wg.Go(w.h.Run)
}

// end ends the session, and waits until nothing of it is left.
func (w *world) end() {
	if w.program != nil {
		w.program.end(0)
	}
	w.locked(func(h *Holder) { h.finishLocked("the test is over") })
	if w.socket != nil {
		w.socket.Close()
	}
	w.wg.Wait()
}

// locked calls f with the holder's mutex held.
func (w *world) locked(f func(h *Holder)) {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	f(w.h)
}

// over reports whether the session has ended by itself.
func (w *world) over() bool {
	select {
	case <-w.h.end:
		return true
	default:
		return false
	}
}

// ask has the holder answer a request, as for a daemon.
func (w *world) ask(open *wire.Open, request wire.Body) (wire.Message, carrier.Carrier) {
	w.t.Helper()
	m, err := wire.New(request)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.path != "" {
		answer, c, err := Carry(w.path, uint32(os.Geteuid()), open, m)
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
	ours, theirs := memoryPair()
	w.wg.Go(func() { carry(theirs) })
	return answer, ours
}

// want decodes an answer that must be of the type of v.
func (w *world) want(why string, m wire.Message, v wire.Body) {
	w.t.Helper()
	if err := m.Decode(v); err != nil {
		w.t.Fatalf("%s: %v", why, err)
	}
}

// state returns how the session describes itself.
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

// A client is the other end of an attachment: what a client process is.
type client struct {
	w        *world
	name     string
	attached wire.Attached
	resumes  uint64
	pings    int

	mu      sync.Mutex
	changed *sync.Cond // of mu: anything below
	input   *buffer.Ring
	peer    *session.Peer
	pump    *pump.Pump
	deaf    bool // takes output and does not deal with it
	frames  []session.Delivered
	notices []session.Notice
	links   []carrier.Carrier
	running int // of links
}

// attach makes somebody the writer of the session, over one carrier.
func (w *world) attach(name string) *client {
	w.t.Helper()
	c, link := w.join(name)
	c.run(link, true)
	return c
}

// join is attach without anybody at the client's end of the carrier.
func (w *world) join(name string) (*client, carrier.Carrier) {
	w.t.Helper()
	c := &client{w: w, name: name, input: buffer.NewRing(64 << 20)}
	c.changed = sync.NewCond(&c.mu)
	req := &wire.Attach{PTY: w.h.spec.PTY, Size: [4]uint16{80, 24}}
	copy(req.Instance[:], name)
	m, link := w.ask(&wire.Open{Client: name}, req)
	w.want("attach", m, &c.attached)
	c.peer = session.NewPeer(session.Config{
		Log:     c.input,
		Acked:   1,
		Next:    c.attached.First,
		Offset:  c.attached.Offset,
		Reorder: 100,
		Window:  4 << 20,
	})
	c.pump = pump.New(&c.mu, c.peer, c.receivedLocked)
	return c, link
}

// statement returns the next Resume, with its proof.
func (c *client) statement() *wire.Resume {
	c.resumes++
	r := &wire.Resume{UID: c.attached.UID, ID: c.attached.ID, N: c.resumes}
	copy(r.Instance[:], c.name)
	r.Proof = auth.Proof(c.attached.Secret, r.Statement())
	return r
}

// resume adds a carrier.
func (c *client) resume() carrier.Carrier {
	c.w.t.Helper()
	m, link := c.w.ask(&wire.Open{}, c.statement())
	c.w.want("resume", m, &wire.Resumed{})
	c.run(link, true)
	return link
}

// run moves frames over a carrier until it ends.
func (c *client) run(link carrier.Carrier, ready bool) {
	started := make(chan struct{})
	c.w.wg.Go(func() {
		c.pump.Run(link, ready, func(session.CarrierID) {
			c.links = append(c.links, link)
			c.running++
			close(started)
		})
		c.mu.Lock()
		c.running--
		c.changed.Broadcast()
		c.mu.Unlock()
	})
	<-started
}

// hangUp closes all carriers, and waits until both ends have noticed.
func (c *client) hangUp() {
	c.mu.Lock()
	links := c.links
	c.mu.Unlock()
	for _, link := range links {
		link.Close()
	}
	c.awaitEnd()
}

func (c *client) receivedLocked() {
	frames := c.peer.Take()
	c.frames = append(c.frames, frames...)
	if !c.deaf {
		c.peer.Consume(time.Now(), frames...)
	}
	c.notices = append(c.notices, c.peer.TakeNotices()...)
	c.changed.Broadcast()
}

// send appends a frame to the client's log.
func (c *client) send(t buffer.Type, payload string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input.Append(t, []byte(payload))
	c.peer.Appended(time.Now())
	c.pump.Wake()
}

func (c *client) write(s string) { c.send(session.Stdin, s) }

// listen deals with all output from now on, and with what was left alone.
func (c *client) listen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = false
	c.peer.Consume(time.Now(), c.frames...)
	c.pump.Wake()
}

// leave says that the client will not come back.
func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peer.Notify(session.Leaving, "")
	c.pump.Wake()
}

// await waits until something is so.
func (c *client) await(what string, ok func() bool) {
	c.w.t.Helper()
	until := time.Now().Add(c.w.patience)
	timer := time.AfterFunc(c.w.patience, c.changed.Broadcast)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ok() {
		if !time.Now().Before(until) {
			c.w.t.Fatalf("%s waits in vain for %s; has %s", c.name, what, c.summaryLocked())
		}
		c.changed.Wait()
	}
}

func (c *client) summaryLocked() string {
	out := c.outputLocked(session.Stdout)
	return fmt.Sprintf("%d frames, %d bytes that end in %q, notices %v, %d carriers",
		len(c.frames), len(out), out[max(0, len(out)-100):], c.notices, c.running)
}

// awaitOutput waits until the output has what is wanted.
func (c *client) awaitOutput(want string) {
	c.w.t.Helper()
	c.await(fmt.Sprintf("output %q", want), func() bool { return strings.Contains(c.outputLocked(session.Stdout), want) })
}

// awaitExit waits for the end of the program and returns its status.
func (c *client) awaitExit() byte {
	c.w.t.Helper()
	var status byte
	c.await("the end of the program", func() bool {
		if len(c.frames) == 0 {
			return false
		}
		last := c.frames[len(c.frames)-1]
		if last.Type == session.Exit {
			status = last.Payload[0]
		}
		return last.Type == session.Exit
	})
	return status
}

// awaitEnd waits until all carriers are gone.
func (c *client) awaitEnd() {
	c.w.t.Helper()
	c.await("the end of its carriers", func() bool { return c.running == 0 })
}

// output returns what was received.
func (c *client) output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outputLocked(session.Stdout)
}

func (c *client) outputLocked(t buffer.Type) string {
	var b strings.Builder
	for _, d := range c.frames {
		if d.Lost == nil && d.Type == t {
			b.Write(d.Payload)
		}
	}
	return b.String()
}

// lost returns what was received in place of frames that were not there.
func (c *client) lost() (frames, bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.peer.Counters()
	return n.LostFrames, n.LostBytes
}

// A memory is a carrier within this process.
type memory struct {
	*io.PipeReader
	w       *io.PipeWriter
	in, out chan []byte
	done    chan struct{}
	close   func()
}

// memoryPair returns the two ends of a carrier. Nothing is buffered on its
// stream.
func memoryPair() (a, b *memory) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	ab, ba := make(chan []byte, 16), make(chan []byte, 16)
	done := make(chan struct{})
	closeAll := sync.OnceFunc(func() {
		close(done)
		for _, r := range []*io.PipeReader{ar, br} {
			r.CloseWithError(net.ErrClosed)
		}
		for _, w := range []*io.PipeWriter{aw, bw} {
			w.CloseWithError(io.EOF)
		}
	})
	return &memory{ar, aw, ba, ab, done, closeAll}, &memory{br, bw, ab, ba, done, closeAll}
}

func (m *memory) Write(b []byte) (int, error) { return m.w.Write(b) }
func (m *memory) Datagrams() bool             { return true }
func (m *memory) Close() error                { m.close(); return nil }

func (m *memory) SendDatagram(b []byte) error {
	select {
	case <-m.done:
		return net.ErrClosed
	case m.out <- bytes.Clone(b):
	default: // dropped
	}
	return nil
}

func (m *memory) ReceiveDatagram() ([]byte, error) {
	select {
	case <-m.done:
		return nil, net.ErrClosed
	case b := <-m.in:
		return b, nil
	}
}
