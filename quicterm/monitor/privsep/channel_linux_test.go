package privsep

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// pair returns the two ends of the socket between the processes.
func pair(t testing.TB) (monitor, network *net.UnixConn) {
	t.Helper()
	monitor, file, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { monitor.Close(); c.Close() })
	return monitor, c.(*net.UnixConn)
}

// A rowFunc is a call for tests.
type rowFunc func(payload []byte, files []*os.File) (any, error)

func (f rowFunc) serve(_ context.Context, payload []byte, files []*os.File) (any, error) {
	defer closeFiles(files)
	return f(payload, files)
}
func (rowFunc) bind(kind, asker) {}

// plainly is a handler whose answers come without descriptors.
func plainly(call func() (any, error)) (any, []int, error) {
	answer, err := call()
	return answer, nil, err
}

// answering returns the monitor's end of a channel whose only call is f.
func answering(socket *net.UnixConn, f rowFunc) *channel {
	c := newChannel(socket, false, plainly)
	c.serve(table{{call: f}})
	return c
}

// A network process is ready once, whatever it says.
func TestReadyTwice(t *testing.T) {
	l := loopback(t, idle{})
	if _, err := l.Ready(t.Context(), new(None)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Ready(t.Context(), new(None)); err == nil || err.Error() != errReady.Error() {
			t.Errorf("ready again: %v, want %v", err, errReady)
		}
	}
}

// loopback returns a network process whose monitor does nothing.
func loopback(t *testing.T, network Network) *Loopback {
	t.Helper()
	l, err := NewLoopback(&Host{Calls: new(Calls), Log: slog.New(slog.DiscardHandler), Panics: panics.New()}, network)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	t.Cleanup(func() { end(); <-done })
	return l
}

// An idle is a network half without clients.
type idle struct{ Network }

func (idle) Update(State)                                       {}
func (idle) Serve(context.Context, Listener) error              { return nil }
func (idle) ServeLocal(_ context.Context, c net.Conn, _ *Local) { c.Close() }
func (idle) Clients(context.Context) (*Clients, error)          { return new(Clients), nil }
func (idle) Metrics(context.Context) ([]byte, error)            { return nil, nil }

// frame returns a frame.
func frame(k kind, call uint64, payload []byte) []byte {
	b := make([]byte, headerSize)
	binary.BigEndian.PutUint32(b, uint32(len(payload)))
	b[4] = byte(k)
	binary.BigEndian.PutUint64(b[8:], call)
	return append(b, payload...)
}

// What is no frame ends the channel, and takes no memory before.
func TestBadFrames(t *testing.T) {
	long := frame(firstCall, 1, nil)
	binary.BigEndian.PutUint32(long, maxFrame+1)
	files := frame(firstCall, 1, nil)
	files[5] = maxFiles + 1
	for why, b := range map[string][]byte{
		"too long": long, "too many descriptors": files, "not zero": {0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"reply of no form": frame(kindReply, 1, []byte{0xff}),
		"a call twice":     append(frame(firstCall, 1, nil), frame(firstCall, 1, nil)...),
	} {
		ours, theirs := pair(t)
		answered := make(chan struct{})
		c := answering(ours, func([]byte, []*os.File) (any, error) { <-answered; return nil, nil })
		ended := make(chan error)
		go func() { ended <- c.run(t.Context()) }()
		theirs.Write(b)
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			c.mu.Lock()
			closed := c.closed
			c.mu.Unlock()
			if closed {
				break
			} else if time.Since(start) > 20*time.Second {
				t.Fatalf("%s: the channel goes on", why)
			}
		}
		close(answered)
		if err := <-ended; err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// Calls above the bounds fail, and the others are answered.
func TestTooManyCalls(t *testing.T) {
	ours, theirs := pair(t)
	goOn := make(chan struct{})
	server := answering(ours, func([]byte, []*os.File) (any, error) { <-goOn; return nil, nil })
	client := newChannel(theirs, true, plainly)
	go server.run(t.Context())
	go client.run(t.Context())
	defer server.close()
	defer client.close()
	payload := make([]byte, maxFrame-10)
	const calls = maxBytes/maxFrame + 10
	answers := make(chan error, calls)
	for range calls {
		go func() { _, err := client.call(t.Context(), firstCall, payload, nil); answers <- err }()
	}
	for range 9 {
		if err := <-answers; err == nil || err.Error() != errTooMany.Error() {
			t.Fatalf("a call too many: %v", err)
		}
	}
	close(goOn)
	failed := 0
	for range calls - 9 {
		if <-answers != nil {
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d other calls fail", failed)
	}
}

// flood makes a channel answer calls, by a KiB each, whose replies nobody reads yet.
func flood(t *testing.T, calls int, sendTime time.Duration) (c *channel, replies net.Conn, ended chan error) {
	ours, theirs := pair(t)
	c = answering(ours, func([]byte, []*os.File) (any, error) { return make([]byte, 1024), nil })
	c.sendTime = sendTime
	ended = make(chan error, 1)
	go func() { ended <- c.run(t.Context()) }()
	go func() {
		for i := range calls {
			theirs.Write(frame(firstCall, uint64(i), nil))
		}
	}()
	return c, theirs, ended
}

// waiting returns how many calls of the other end count.
func (c *channel) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.cancels)
}

// Calls count until their replies are sent, so a process that reads none has maxCalls of them.
func TestRepliesThatNobodyReads(t *testing.T) {
	const calls = maxCalls + 1000
	c, replies, ended := flood(t, calls, time.Minute)
	for start := time.Now(); c.waiting() < maxCalls; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("%d calls count, want %d", c.waiting(), maxCalls)
		}
	}
	replies.SetReadDeadline(time.Now().Add(20 * time.Second))
	for range calls {
		header := make([]byte, headerSize)
		_, err := io.ReadFull(replies, header)
		if err == nil {
			_, err = io.CopyN(io.Discard, replies, int64(binary.BigEndian.Uint32(header)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replies.Close()
	<-ended
	if n := c.waiting(); n > 0 {
		t.Errorf("%d calls count after their replies", n)
	}
}

// A process that reads, but slowly, is ended as one that reads nothing.
func TestRepliesThatAreReadSlowly(t *testing.T) {
	c, replies, ended := flood(t, maxCalls, 200*time.Millisecond)
	for c.waiting() < maxCalls/2 && !c.ended() {
		time.Sleep(time.Millisecond)
	}
	for b := make([]byte, 32<<10); ; time.Sleep(10 * time.Millisecond) {
		replies.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := replies.Read(b); err != nil {
			break
		}
	}
	if !c.ended() {
		t.Fatal("all replies were waited for")
	}
	<-ended
}

// hostileTexts is a network half that says what a terminal would obey.
type hostileTexts struct{ idle }

const escape = "\x1b]52;c;cm0=\x07\u202e"

func credential(text string) Credential {
	return Credential{Proof: text, Certificate: text, CA: text, Reported: text}
}

func (hostileTexts) Clients(context.Context) (*Clients, error) {
	return &Clients{Sessions: []SessionClients{{Clients: []ClientStatus{{Client: escape, Credential: credential(escape), Role: escape, Kind: escape}}}}}, nil
}
func (hostileTexts) Metrics(context.Context) ([]byte, error) {
	return []byte("a 1\n" + escape + "\nb 2\n"), nil
}

// What the network process says is printable when it comes, and an address has no zone: an operator's terminal and
// a session's environment get nothing of its choice.
func TestTextsOfNetworkProcess(t *testing.T) {
	l := loopback(t, hostileTexts{})
	if _, err := l.Ready(t.Context(), new(None)); err != nil {
		t.Fatal(err)
	}
	p := l.process
	clients, err := p.Clients(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const shown = "?]52;c;cm0=??"
	if got := clients.Sessions[0].Clients[0]; got != (ClientStatus{Client: shown, Credential: credential(shown), Role: shown, Kind: shown}) {
		t.Errorf("a client is %q", got.Client)
	}
	if got, err := p.Metrics(t.Context()); string(got) != "a 1\n"+shown+"\nb 2\n" {
		t.Errorf("the metrics are %q, %v", got, err)
	}
	for _, err := range []error{errors.New(escape), &wire.Error{Text: escape}, &Withdrawn{Reason: escape}} {
		if got := decoded(t, failureOf(err)).err(); got.Error() != shown || reflect.TypeOf(got) != reflect.TypeOf(err) {
			t.Errorf("%T is %T: %q", err, got, got)
		}
	}
	zoned := netip.MustParseAddrPort("[fe80::1%" + escape + "\x00LD_PRELOAD=/tmp/x]:1")
	if got, want := decoded(t, &By{Path: Path{Client: zoned, Server: zoned}}).Path, netip.MustParseAddrPort("[fe80::1]:1"); got != (Path{Client: want, Server: want}) {
		t.Errorf("the addresses are %q", got)
	}
	var log bytes.Buffer
	p.output = &log
	p.copyLog(io.NopCloser(strings.NewReader("msg=one\n" + escape + "\nmsg=last")))
	if got := log.String(); got != "msg=one\n"+shown+"\nmsg=last\n" {
		t.Errorf("the log has %q", got)
	}
}

// decoded returns what the other half gets.
func decoded[T any](t *testing.T, v *T) *T {
	t.Helper()
	b, err := channelEncoding.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	got := new(T)
	if err := decode(b, got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A monitor takes no descriptor from the network process, also where the kernel passes it on.
func TestNoDescriptorsFromNetwork(t *testing.T) {
	for _, passed := range []bool{false, true} {
		t.Run(fmt.Sprint("passed ", passed), func(t *testing.T) { testNoDescriptors(t, passed) })
	}
}

func testNoDescriptors(t *testing.T, passes bool) {
	ours, theirs := pair(t)
	got := make(chan int, 1)
	c := answering(ours, func(_ []byte, files []*os.File) (any, error) { got <- len(files); return nil, nil })
	raw, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		switch takes, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS); {
		case err != nil && !passes:
			t.Skip("the kernel cannot refuse descriptors: ", err)
		case takes != 0 && !passes:
			t.Error("the monitor's end takes descriptors")
		case passes:
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	go c.run(t.Context())
	defer c.close()
	sender := newChannel(theirs, true, plainly)
	go sender.run(t.Context())
	defer sender.close()
	held, passed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_, err = sender.call(t.Context(), firstCall, nil, nil, int(passed.Fd()))
	passed.Close()
	if passes && err != nil || !passes && !errors.Is(err, unix.EPERM) {
		t.Fatal(err)
	}
	if passes {
		if n := <-got; n != 0 {
			t.Errorf("the monitor has %d descriptors of it", n)
		}
	}
	held.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := held.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the descriptor is still open somewhere: %v", err)
	}
}

// Descriptors arrive with the frame that they were sent with, whatever comes before and after it.
func TestDescriptorsOfFrames(t *testing.T) {
	ours, theirs := pair(t)
	dir := t.TempDir()
	server := newChannel(ours, false, func(call func() (any, error)) (any, []int, error) {
		payload, err := call()
		if err != nil || len(payload.([]byte))%2 == 0 {
			return bytes.Repeat(payload.([]byte), 100), nil, err
		}
		f, err := os.Open(dir)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		fd, err := descriptorOf(f)
		return len(payload.([]byte)), []int{fd}, err
	})
	server.serve(table{{call: rowFunc(func(payload []byte, _ []*os.File) (any, error) { return payload, nil })}})
	client := newChannel(theirs, true, plainly)
	go server.run(t.Context())
	go client.run(t.Context())
	defer server.close()
	defer client.close()
	errs := make(chan error, 200)
	for i := range 200 {
		go func() {
			body := strings.Repeat("x", i)
			encoded, _ := channelEncoding.Marshal(body)
			files, err := client.call(t.Context(), firstCall, body, nil)
			defer closeFiles(files)
			if err == nil && len(files) != len(encoded)%2 {
				err = errors.New("another number of descriptors")
			}
			for _, f := range files {
				if info, statErr := f.Stat(); statErr != nil || !info.IsDir() {
					err = errors.New("another descriptor")
				}
			}
			errs <- err
		}()
	}
	for range 200 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// Whatever a monitor sends, its network process answers, and does not panic.
func FuzzAnswers(f *testing.F) {
	for place := range 5 {
		f.Add(byte(place), []byte{0xa0})
	}
	f.Fuzz(func(t *testing.T, place byte, payload []byte) {
		r := NewRemote(nil)
		r.life = t.Context()
		tableOf(r.calls(idle{})).serve(t.Context(), firstCall+kind(place%8), payload, nil)
		var answered reply
		if channelDecoding.Unmarshal(payload, &answered) == nil && answered.Failure != nil && answered.Failure.err() == nil {
			t.Error("a failure without an error")
		}
	})
}
