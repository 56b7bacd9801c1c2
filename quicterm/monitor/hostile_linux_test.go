package monitor

import (
	"bytes"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
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

// newMonitor returns a monitor without sessions, in real time.
func newMonitor(t testing.TB) *Monitor {
	t.Helper()
	settings := configs.DefaultServer()
	settings.StateDir, settings.RuntimeDir = t.TempDir(), t.TempDir()
	return monitorWith(t, settings)
}

func monitorWith(t testing.TB, settings *configs.Server) *Monitor {
	t.Helper()
	m, err := New(Config{Settings: settings, Granted: true, Holders: holdertest.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.census.finish(m)
		m.keyFiles.Close()
	})
	return m
}

// takenOver returns the end of a network process that somebody has taken over.
func takenOver(t testing.TB, m *Monitor) *Remote {
	t.Helper()
	r, _, _ := connected(t, m)
	return r
}

// connected returns a network process that serves nobody, and the monitor's end of it.
func connected(t testing.TB, m *Monitor) (*Remote, *Process, *channel) {
	t.Helper()
	ours, theirs := pair(t)
	p := &Process{monitor: m, arrived: make(chan struct{}), sockets: make(map[uint64]*held)}
	c := newChannel(ours, false, nil)
	c.handle = func(ctx context.Context, k kind, payload []byte, _ []*os.File) (any, []int, error) {
		return p.answer(ctx, c, k, payload)
	}
	r := NewRemote(theirs)
	r.network = idle{}
	done, ctx := make(chan struct{}, 2), t.Context() // which may not be asked for while a fuzz target runs
	go func() { c.run(ctx); done <- struct{}{} }()
	go func() { r.channel.run(ctx); done <- struct{}{} }()
	t.Cleanup(func() {
		c.close()
		r.channel.close()
		<-done
		<-done
	})
	return r, p, c
}

// A network process is ready once, whatever it says.
func TestReadyTwice(t *testing.T) {
	r := takenOver(t, newMonitor(t))
	if err := r.ask(t.Context(), kindReady, nil, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.ask(t.Context(), kindReady, nil, nil); err == nil || err.Error() != errReady.Error() {
			t.Errorf("ready again: %v, want %v", err, errReady)
		}
	}
}

// A network process that was taken over gets nothing that no login has allowed.
func TestTakenOverNetworkProcess(t *testing.T) {
	m := newMonitor(t)
	r := takenOver(t, m)
	token, err := m.IssueToken(uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	login, err := r.Redeem(t.Context(), &Token{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	by := By{Login: login.ID}
	if _, err := r.List(t.Context(), &by); err != nil {
		t.Fatal(err)
	}
	var guessed By
	resumed, err := m.login(&proven{account: m.self, resumed: new(admission), at: time.Now()}, Path{})
	if err != nil {
		t.Fatal(err)
	}
	old, err := m.login(&proven{account: m.self, at: time.Now().Add(-RequestsTime - requestsSlack - time.Second)}, Path{})
	if err != nil {
		t.Fatal(err)
	}
	key := newUserKey(t).Marshal()
	offer := Offer{User: m.self.Name, Keys: [][]byte{key}}
	ctx := t.Context()
	for what, try := range map[string]func() error{
		"a signature for ssh":             func() error { return second(r.Sign(ctx, &Sign{Message: []byte("SSHSIG")})) },
		"a signature over a hash":         func() error { return second(r.Sign(ctx, &Sign{Message: make([]byte, 32), Hash: uint(crypto.SHA256)})) },
		"a signature by no key":           func() error { return second(r.Sign(ctx, &Sign{Key: 99})) },
		"a signature by a key before all": func() error { return second(r.Sign(ctx, &Sign{Key: -1})) },
		"a login by no token":             func() error { return second(r.Redeem(ctx, &Token{})) },
		"a login by a used token":         func() error { return second(r.Redeem(ctx, &Token{Token: token})) },
		"a login by no signature": func() error {
			return second(r.Prove(ctx, &Proof{Offer: offer, Exporter: make([]byte, auth.ExporterSize)}))
		},
		"a login by a key that was not offered": func() error {
			return second(r.Prove(ctx, &Proof{Offer: offer, Key: 1, Exporter: make([]byte, auth.ExporterSize)}))
		},
		"a login without an exporter": func() error { return second(r.Prove(ctx, &Proof{Offer: offer})) },
		"keys without end":            func() error { return second(r.Offer(ctx, &Offer{User: m.self.Name, Keys: make([][]byte, 1000)})) },
		"a list by no login":          func() error { return second(r.List(ctx, &guessed)) },
		"a list by a resume":          func() error { return second(r.List(ctx, &By{Login: resumed.ID})) },
		"a session by no login":       func() error { return second(r.Attach(ctx, &Attach{By: guessed, PTY: true})) },
		"a session by a resume":       func() error { return second(r.Attach(ctx, &Attach{By: By{Login: resumed.ID}, PTY: true})) },
		"a session by an old login":   func() error { return second(r.Attach(ctx, &Attach{By: By{Login: old.ID}, PTY: true})) },
		"a kill by an old login":      func() error { return second(r.Pass(ctx, &Pass{By: By{Login: old.ID}, Type: wire.TypeKill})) },
		"a revoke by a resume":        func() error { return second(r.Revoke(ctx, &Revoke{By: By{Login: resumed.ID}, All: true})) },
		"an Inspect for a holder":     func() error { return second(r.Pass(ctx, &Pass{By: by, Type: wire.TypeInspect})) },
		"an Attach for a holder":      func() error { return second(r.Pass(ctx, &Pass{By: by, Type: wire.TypeAttach})) },
		"a resume of any bytes":       func() error { return second(r.Resume(ctx, &Resume{Payload: []byte("kill")})) },
		"a check of no login":         func() error { return r.Check(ctx, &guessed) },
		"an unknown call":             func() error { return r.ask(ctx, 99, nil, nil) },
		"a call of the monitor":       func() error { return r.ask(ctx, kindMetrics, nil, nil) },
		"a call of no form":           func() error { return r.ask(ctx, kindOffer, "text", nil) },
	} {
		if try() == nil {
			t.Errorf("it gets %s", what)
		}
	}
	r.Leave(login.ID)
	for start := time.Now(); second(r.List(ctx, &by)) == nil; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("a login that has left still counts")
		}
	}
}

func second[T any](_ T, err error) error { return err }

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
	long := frame(kindList, 1, nil)
	binary.BigEndian.PutUint32(long, maxFrame+1)
	files := frame(kindList, 1, nil)
	files[5] = maxFiles + 1
	for why, b := range map[string][]byte{
		"too long": long, "too many descriptors": files, "not zero": {0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"reply of no form": frame(kindReply, 1, []byte{0xff}),
		"a call twice":     append(frame(kindList, 1, nil), frame(kindList, 1, nil)...),
	} {
		ours, theirs := pair(t)
		answered := make(chan struct{})
		c := newChannel(ours, false, func(context.Context, kind, []byte, []*os.File) (any, []int, error) {
			<-answered
			return nil, nil, nil
		})
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
	server := newChannel(ours, false, func(context.Context, kind, []byte, []*os.File) (any, []int, error) {
		<-goOn
		return nil, nil, nil
	})
	client := newChannel(theirs, true, nil)
	go server.run(t.Context())
	go client.run(t.Context())
	defer server.close()
	defer client.close()
	payload := make([]byte, maxFrame-10)
	const calls = maxBytes/maxFrame + 10
	answers := make(chan error, calls)
	for range calls {
		go func() { _, err := client.call(t.Context(), kindList, payload, nil); answers <- err }()
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
	c = newChannel(ours, false, func(context.Context, kind, []byte, []*os.File) (any, []int, error) {
		return make([]byte, 1024), nil, nil
	})
	c.sendTime = sendTime
	ended = make(chan error, 1)
	go func() { ended <- c.run(t.Context()) }()
	go func() {
		for i := range calls {
			theirs.Write(frame(kindList, uint64(i), nil))
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
	m := newMonitor(t)
	r, p, c := connected(t, m)
	r.network = hostileTexts{}
	p.current = c
	close(p.arrived)
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
	if got := (&failure{Text: escape}); decoded(t, got).Text != shown {
		t.Errorf("an error is %q", decoded(t, got).Text)
	}
	zoned := netip.MustParseAddrPort("[fe80::1%" + escape + "\x00LD_PRELOAD=/tmp/x]:1")
	if got, want := decoded(t, &By{Path: Path{zoned, zoned}}).Path, netip.MustParseAddrPort("[fe80::1]:1"); got != (Path{want, want}) {
		t.Errorf("the addresses are %q", got)
	}
	var log bytes.Buffer
	p.log = &log
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
	c := newChannel(ours, false, func(_ context.Context, _ kind, _ []byte, files []*os.File) (any, []int, error) {
		got <- len(files)
		return nil, nil, nil
	})
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
	sender := newChannel(theirs, true, nil)
	go sender.run(t.Context())
	defer sender.close()
	held, passed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_, err = sender.call(t.Context(), kindList, nil, nil, int(passed.Fd()))
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
	server := newChannel(ours, false, func(_ context.Context, _ kind, payload []byte, _ []*os.File) (any, []int, error) {
		if len(payload)%2 == 0 {
			return bytes.Repeat(payload, 100), nil, nil
		}
		f, err := os.Open(dir)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		fd, err := descriptorOf(f)
		return len(payload), []int{fd}, err
	})
	client := newChannel(theirs, true, nil)
	go server.run(t.Context())
	go client.run(t.Context())
	defer server.close()
	defer client.close()
	errs := make(chan error, 200)
	for i := range 200 {
		go func() {
			body := strings.Repeat("x", i)
			encoded, _ := channelEncoding.Marshal(body)
			files, err := client.call(t.Context(), kindList, body, nil)
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

// Whatever a network process sends, the monitor answers, and does not panic.
func FuzzCalls(f *testing.F) {
	m := newMonitor(f)
	_, p, c := connected(f, m)
	for k := kindSetup; k <= kindMeasure; k++ {
		f.Add(byte(k), []byte{0xa0})
		f.Add(byte(k), []byte{0xff})
	}
	for k, body := range map[kind]any{
		kindOffer: Offer{User: "root", Keys: [][]byte{{1}}}, kindProve: Proof{Offer: Offer{User: "root", Keys: [][]byte{{1}}}},
		kindAttach: Attach{PTY: true, Env: [][2]string{{"A", "b"}}}, kindResume: Resume{Payload: make([]byte, 84)}, kindLeave: LoginID{},
		kindSign: Sign{Message: []byte("x")}, kindPass: Pass{Type: wire.TypeKill}, kindRevoke: Revoke{All: true}, kindRedeem: Token{},
	} {
		b, err := channelEncoding.Marshal(body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(k), b)
	}
	f.Fuzz(func(t *testing.T, k byte, payload []byte) {
		if kind(k) == kindMeasure {
			return // it has no form
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if kind(k) == kindReady {
			p.ready(ctx, c)
			return
		}
		answer, send, err := m.dispatch(ctx, kind(k), payload)
		if len(send) > 0 {
			t.Errorf("a descriptor for %q", payload)
		}
		if err != nil {
			if failureOf(err) == nil {
				t.Error("no failure")
			}
		} else if _, err := channelEncoding.Marshal(answer); err != nil {
			t.Error(err)
		}
	})
}

// Whatever a monitor sends, its network process answers, and does not panic.
func FuzzAnswers(f *testing.F) {
	for k := kindState; k <= kindMetrics; k++ {
		f.Add(byte(k), []byte{0xa0})
	}
	f.Fuzz(func(t *testing.T, k byte, payload []byte) {
		r := NewRemote(nil)
		r.network, r.life = idle{}, t.Context()
		r.answer(t.Context(), kind(k), payload, nil)
		var answered reply
		if channelDecoding.Unmarshal(payload, &answered) == nil && answered.Failure != nil && answered.Failure.err() == nil {
			t.Error("a failure without an error")
		}
	})
}
