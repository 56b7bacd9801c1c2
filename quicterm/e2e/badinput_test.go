//go:build linux || darwin

package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A lane is a client's connection on which anything may be said.
type lane struct {
	t    *testing.T
	h    *rig.Host
	link *carrier.QUIC
	name string // in the log
	from int    // where the log was when the lane began: ports are used again
}

func dialLane(t *testing.T, h *rig.Host) *lane {
	t.Helper()
	from := h.Log.Len()
	link := dialOnly(t, h.Addr)
	addr := link.Conn().LocalAddr().(*net.UDPAddr)
	return &lane{t: t, h: h, link: link, name: fmt.Sprintf("client=127.0.0.1:%d ", addr.Port), from: from}
}

// say sends all at once. The daemon may have closed the lane before all is sent:
// that is seen in what it says.
func (l *lane) say(parts ...[]byte) { l.link.Write(bytes.Join(parts, nil)) }

// read calls f, which reads from the lane until it fails or is done, and fails the
// test if that takes too long.
func (l *lane) read(f func(r io.Reader)) {
	l.t.Helper()
	timer := time.AfterFunc(rig.Patience, func() {
		l.t.Errorf("%s: nothing comes, not even the end", l.name)
		l.link.Close()
	})
	defer timer.Stop()
	f(l.link)
}

// answer returns the next message.
func (l *lane) answer() (m wire.Message) {
	l.t.Helper()
	l.read(func(r io.Reader) {
		var err error
		if m, err = wire.Read(r, wire.MaxMessage); err != nil {
			l.t.Fatalf("no answer: %v", err)
		}
	})
	return m
}

// want decodes the next message, which must be of the type of v.
func (l *lane) want(v wire.Body) {
	l.t.Helper()
	if err := l.answer().Decode(v); err != nil {
		l.t.Fatal(err)
	}
}

// end returns what is said until the end of the lane, and closes it.
func (l *lane) end() (b []byte) {
	l.read(func(r io.Reader) { b, _ = io.ReadAll(r) })
	l.link.Close()
	return b
}

// wantRefused checks that the lane ends with a denial, or without a word, and with
// one line of the log that says why.
func (l *lane) wantRefused(word bool, why string) {
	l.t.Helper()
	said := l.end()
	if denied := message(l.t, &wire.Denied{}); word && !bytes.Equal(said, denied) || !word && len(said) > 0 {
		l.t.Errorf("told %x", said)
	}
	l.wantLogged(why)
}

// wantLogged checks that there is one complaint about the lane in the log.
func (l *lane) wantLogged(why string) {
	l.t.Helper()
	l.h.Log.Await(l.t, l.from, regexp.MustCompile("(level=WARN|level=ERROR).*"+l.name+".*"+why))
	if lines := complaints(l.h, l.from, l.name); len(lines) != 1 {
		l.t.Errorf("%d lines in the log, want 1:\n%s", len(lines), strings.Join(lines, ""))
	}
}

// complaints returns the lines of the log about something that went wrong, from an
// offset on.
func complaints(h *rig.Host, from int, about string) []string {
	var found []string
	for line := range strings.Lines(h.Log.String()[from:]) {
		wrong := strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
		if wrong && strings.Contains(line, about) {
			found = append(found, line)
		}
	}
	return found
}

// message encodes a message.
func message(t *testing.T, v wire.Body) []byte {
	t.Helper()
	m, err := wire.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return m.Append(nil)
}

// claim is the header of a message that claims a length.
func claim(typ wire.Type, length int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(typ)<<24|uint32(length))
}

// ticket gets one from the daemon.
func ticket(t *testing.T, h *rig.Host) []byte {
	t.Helper()
	g, err := quicterm.Grant(h.Path("run"), func() error { return errors.New("no daemon") })
	if err != nil {
		t.Fatal(err)
	}
	return message(t, &wire.Ticket{Ticket: g.Ticket})
}

// attach opens a session on a new lane.
func attach(t *testing.T, h *rig.Host, req *wire.Attach) (*lane, *wire.Attached) {
	t.Helper()
	l := dialLane(t, h)
	l.say(message(t, &wire.Hello{}), ticket(t, h), message(t, req))
	attached := new(wire.Attached)
	l.want(attached)
	return l, attached
}

// proof is a Resume of the instance that a session was opened with.
func proof(t *testing.T, a *wire.Attached, n uint64, instance wire.InstanceID) *wire.Resume {
	r := &wire.Resume{UID: a.UID, ID: a.ID, Instance: instance, N: n}
	r.Proof = auth.Proof(a.Secret, r.Statement())
	return r
}

func frame(seq uint64, typ buffer.Type, payload string) []byte {
	return buffer.AppendFrame(nil, buffer.Frame{Seq: seq, Type: typ, Payload: []byte(payload)})
}

// ackOf encodes an ack.
func ackOf(values ...uint64) []byte {
	var b []byte
	for _, v := range values {
		b = binary.AppendUvarint(b, v)
	}
	return frame(0, 0x80, string(b))
}

// Whatever comes over any socket is the end of what it came by, with one line of
// the log, and nothing to others.
func TestBadInput(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "healthy")
	finishPipe := healthyPipe(t, h)

	t.Run("while others work", func(t *testing.T) {
		for name, f := range map[string]func(*testing.T, *rig.Host){
			"before login":     badBeforeLogin,
			"signatures":       badSignatures,
			"tickets":          badTickets,
			"requests":         badRequests,
			"resumes":          badResumes,
			"streams":          badStreams,
			"datagrams":        badDatagrams,
			"packets":          badPackets,
			"sockets of grant": badGrants,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f(t, h)
			})
		}
	})

	finishPipe()
	x.Run("echo st''ill here", "still here")
	if err := h.Daemon.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the daemon is gone: %v", err)
	}
	if log := h.Log.String(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine ") {
		t.Error("a panic")
	}
}

// healthyPipe has a command print what it is given until it is told to finish, and
// then checks that every byte came back.
func healthyPipe(t *testing.T, h *rig.Host) (finish func()) {
	cmd := h.QT("connect", "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := rig.NewOutput()
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	chunk := random(16 << 10)
	stop := make(chan struct{})
	sent := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			n, err := in.Write(chunk)
			if sent += n; err != nil {
				t.Errorf("the healthy pipe takes no more: %v", err)
				return
			}
			select {
			case <-stop:
				in.Close()
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return func() {
		t.Helper()
		close(stop)
		wg.Wait()
		if err := cmd.Wait(); err != nil || out.String() != strings.Repeat(string(chunk), sent/len(chunk)) {
			t.Errorf("%v: %d bytes came back, not the %d that were sent", err, out.Len(), sent)
		}
	}
}

func badBeforeLogin(t *testing.T, h *rig.Host) {
	hello := message(t, &wire.Hello{})
	list := message(t, &wire.List{})
	many := make([][]byte, wire.MaxKeys+1)
	for _, test := range []struct {
		name string
		say  []byte
		fin  bool // nothing more will come
		word bool // told that it is denied
		why  string
	}{
		{name: "header cut", say: hello[:2], fin: true, why: "first message"},
		{name: "message cut", say: hello[:len(hello)-1], fin: true, why: "first message"},
		{name: "random bytes", say: append([]byte{byte(wire.TypeHello), 0, 1, 0}, random(256)...), word: true, why: "denied"},
		{name: "long random bytes", say: bytes.Repeat([]byte{0xff}, 100_000), why: "first message"},
		{name: "claims too much", say: claim(wire.TypeHello, wire.MaxMessage+1), why: "longer than allowed"},
		{name: "resume that claims too much", say: claim(wire.TypeResume, 1<<24-1), why: "longer than allowed"},
		{name: "resume of another size", say: append(claim(wire.TypeResume, 3), 1, 2, 3), why: "resume of 3 bytes"},
		{name: "empty hello", say: claim(wire.TypeHello, 0), word: true, why: "denied"},
		{name: "no map", say: append(claim(wire.TypeHello, 1), 0x80), word: true, why: "denied"},
		{name: "deep", say: append(claim(wire.TypeHello, 5000), bytes.Repeat([]byte{0x81}, 5000)...), word: true, why: "denied"},
		{name: "claims many keys", say: append(claim(wire.TypeHello, 7), 0xa1, 3, 0x9a, 0xff, 0xff, 0xff, 0xff), word: true, why: "denied"},
		{name: "many keys", say: message(t, &wire.Hello{Keys: many}), word: true, why: "65 keys"},
		{name: "request first", say: append(message(t, &wire.Attach{}), hello...), word: true, why: "where 1 was expected"},
		{name: "ticket first", say: append(ticket(t, h), hello...), word: true, why: "where 1 was expected"},
		{name: "answer first", say: message(t, &wire.Answer{}), word: true, why: "where 1 was expected"},
		{name: "what a server says", say: message(t, &wire.Attached{}), word: true, why: "where 1 was expected"},
		{name: "what a daemon says to a holder", say: message(t, &wire.Open{}), word: true, why: "where 1 was expected"},
		{name: "type 0", say: claim(0, 0), word: true, why: "where 1 was expected"},
		{name: "type 255", say: append(claim(255, 1), 0xa0), word: true, why: "where 1 was expected"},
		{name: "hello twice", say: bytes.Join([][]byte{hello, hello, list}, nil), word: true, why: "second request"},
		{name: "two requests", say: bytes.Join([][]byte{hello, list, list}, nil), word: true, why: "second request"},
		{name: "request that claims too much", say: append(bytes.Clone(hello), claim(wire.TypeAttach, wire.MaxMessage+1)...), word: true, why: "longer than allowed"},
		{name: "request cut", say: append(bytes.Clone(hello), list[:3]...), fin: true, word: true, why: "unexpected EOF"},
		{name: "end after hello", say: hello, fin: true, word: true, why: "EOF"},
		{name: "keys that are none", say: append(message(t, &wire.Hello{User: me(t), Keys: [][]byte{nil, random(100), []byte("ssh-ed25519")}}), list...), word: true, why: "none of 3 keys"},
		{name: "account with odd bytes", say: append(message(t, &wire.Hello{User: "../\x00\xff\n" + strings.Repeat("x", 100_000), Keys: many[:1]}), list...), word: true, why: "denied"},
		{name: "resume by nobody", say: message(t, &wire.Resume{UID: math.MaxUint32}), why: "resume"},
	} {
		l := dialLane(t, h)
		l.t = t
		l.say(test.say)
		if test.fin {
			l.link.CloseWrite()
		}
		if test.name == "resume by nobody" {
			l.want(&wire.Denied{}) // with a mark
			l.wantRefused(false, test.why)
			continue
		}
		l.wantRefused(test.word, test.why)
		if t.Failed() {
			t.Fatal(test.name)
		}
	}
}

// A client may try a few signatures, and no more.
func badSignatures(t *testing.T, h *rig.Host) {
	l := dialLane(t, h)
	l.say(message(t, &wire.Hello{User: me(t), Keys: [][]byte{h.Key.Marshal()}}), message(t, &wire.List{}))
	blobs := [][]byte{nil, {0}, random(100), []byte("SSHSIG"), append([]byte("SSHSIG\x00\x00\x00\x01\xff\xff\xff\xff"), random(50)...)}
	for _, b := range blobs {
		var offer wire.Offer
		l.want(&offer)
		if len(offer.Keys) != 1 {
			t.Fatalf("offered %d keys", len(offer.Keys))
		}
		key := h.Key.Marshal()
		if len(b) == 1 {
			key = random(32) // not one of those in Hello
		}
		l.say(message(t, &wire.Answer{Key: key, Signature: b}))
	}
	l.wantRefused(true, "6 answers")

	// A signature over another connection is worth nothing on this one.
	identity, err := auth.IdentityFile(h.Path("id"), nil)
	if err != nil {
		t.Fatal(err)
	}
	other := dialLane(t, h)
	signature, err := identity.Sign(other.link.Conn().ConnectionState().TLS, me(t))
	if err != nil {
		t.Fatal(err)
	}
	hello := message(t, &wire.Hello{User: me(t), Keys: [][]byte{h.Key.Marshal()}})
	answer := message(t, &wire.Answer{Key: h.Key.Marshal(), Signature: signature})
	other.say(hello, answer, message(t, &wire.List{}))
	other.want(&wire.Listing{})
	l = dialLane(t, h)
	l.say(hello, answer, message(t, &wire.List{}))
	l.want(&wire.Offer{})
	l.link.CloseWrite()
	l.wantRefused(true, "denied")
}

// A ticket is good once. (That it is not good for long is tested in auth.)
func badTickets(t *testing.T, h *rig.Host) {
	hello, list := message(t, &wire.Hello{}), message(t, &wire.List{})
	for _, secret := range [][]byte{nil, {}, random(31), random(32), random(33), random(150_000)} {
		l := dialLane(t, h)
		l.say(hello, message(t, &wire.Ticket{Ticket: secret}), list)
		l.wantRefused(true, "ticket is not good")
	}
	l := dialLane(t, h)
	l.say(hello, claim(wire.TypeTicket, 100), random(100), list)
	l.wantRefused(true, "denied")
	once := ticket(t, h)
	for i := range 3 {
		l := dialLane(t, h)
		l.say(hello, once, list)
		if i == 0 {
			l.want(&wire.Listing{})
			continue
		}
		l.wantRefused(true, "ticket is not good")
	}
	// Nor twice on one connection, nor after another that is not.
	l = dialLane(t, h)
	l.say(hello, message(t, &wire.Ticket{Ticket: random(32)}), ticket(t, h), list)
	l.wantRefused(true, "ticket is not good")
	once = ticket(t, h)
	l = dialLane(t, h)
	l.say(hello, once, once, list)
	l.wantRefused(true, "ticket is not good")
}

// Requests of one who has logged in.
func badRequests(t *testing.T, h *rig.Host) {
	login := func() *lane {
		t.Helper()
		l := dialLane(t, h)
		l.say(message(t, &wire.Hello{}), ticket(t, h), message(t, &wire.List{}))
		l.want(&wire.Listing{})
		return l
	}
	l := login()
	for _, typ := range []wire.Type{0, wire.TypeHello, wire.TypeTicket, wire.TypeListing, wire.TypeResume, wire.TypeOpen, wire.TypeQuery, wire.TypeSpec, 99, 255} {
		var failed wire.Error
		l.say(claim(typ, 100), random(100))
		if l.want(&failed); failed.Code != wire.CodeUnknown {
			t.Errorf("message %d is answered with %+v", typ, failed)
		}
	}
	var failed wire.Error
	l.say(message(t, &wire.Kill{Session: strings.Repeat("x", 100_000)}))
	if l.want(&failed); failed.Code != wire.CodeNoSession {
		t.Errorf("%+v", failed)
	}
	l.say(message(t, &wire.List{}))
	l.want(&wire.Listing{}) // it goes on
	if lines := complaints(h, l.from, l.name); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
	l.say(message(t, &wire.Attach{Env: make([][2]string, wire.MaxEnv+1)}))
	if l.want(&failed); !strings.Contains(failed.Text, "65 environment variables") {
		t.Errorf("%+v", failed)
	}
	l.wantRefused(false, "65 environment variables")

	for name, say := range map[string][]byte{
		"kill of garbage":   append(claim(wire.TypeKill, 100), random(100)...),
		"attach of garbage": append(claim(wire.TypeAttach, 100), random(100)...),
		"attach of nothing": claim(wire.TypeAttach, 0),
	} {
		l := login()
		l.say(say)
		if l.wantRefused(false, "message of type"); t.Failed() {
			t.Fatal(name)
		}
	}
	l = login()
	l.say(claim(wire.TypeList, wire.MaxMessage+1))
	l.wantClosed()
	l = login()
	l.say(message(t, &wire.List{})[:3])
	l.link.CloseWrite()
	l.wantClosed()
}

// wantClosed checks that the lane ends without a word.
func (l *lane) wantClosed() {
	l.t.Helper()
	if said := l.end(); len(said) > 0 {
		l.t.Errorf("told %x", said)
	}
}

// Each proof is good once. Whether there is no such session or the proof is wrong,
// a stranger is told the same.
func badResumes(t *testing.T, h *rig.Host) {
	instance := wire.InstanceID(random(16))
	first, attached := attach(t, h, &wire.Attach{Instance: instance, Session: "resumed", Mode: wire.ModeAttachOrCreate, Command: "cat"})
	resume := func(r *wire.Resume, v wire.Body) *lane {
		t.Helper()
		l := dialLane(t, h)
		l.say(message(t, r))
		l.want(v)
		return l
	}
	good := proof(t, attached, 1, instance)
	resume(good, &wire.Resumed{}).link.Close()
	denied := func(why string, r *wire.Resume) wire.Denied {
		t.Helper()
		var d wire.Denied
		l := resume(r, &d)
		if said := l.end(); len(said) > 0 {
			t.Errorf("%s: told %x as well", why, said)
		}
		l.wantLogged("denied")
		return d
	}
	replayed := denied("replayed", good)
	wrong := proof(t, attached, 2, instance)
	wrong.Proof[0] ^= 1
	other := proof(t, attached, 2, wire.InstanceID{})
	unknown := proof(t, attached, 2, instance)
	unknown.ID[15] ^= 1
	foreign := proof(t, attached, 2, instance)
	foreign.UID += 12345
	for why, r := range map[string]*wire.Resume{"wrong proof": wrong, "another instance": other, "another account": foreign} {
		if d := denied(why, r); d != replayed || d.Boot != attached.Boot {
			t.Errorf("%s: told %+v, and %+v when replayed", why, d, replayed)
		}
	}
	if d := denied("unknown session", unknown); len(d.Boot) != len(attached.Boot) || d.Boot == attached.Boot && d.Boot != "" {
		t.Errorf("unknown session: told %+v; its own boot is %q", d, attached.Boot)
	}
	resume(proof(t, attached, 2, instance), &wire.Resumed{})

	// The first lane has not noticed.
	first.say(frame(1, session.Stdin, "still mine"))
	first.wantOutput("still mine")
}

// wantOutput waits until the session has printed something, by any lane.
func (l *lane) wantOutput(want string) {
	l.t.Helper()
	var mu sync.Mutex
	frames := map[uint64]string{}
	seen := make(chan struct{})
	see := sync.OnceFunc(func() { close(seen) })
	take := func(f buffer.Frame) {
		mu.Lock()
		defer mu.Unlock()
		if f.Type == session.Stdout {
			frames[f.Seq] = string(f.Payload)
		}
		all := ""
		for seq := uint64(1); frames[seq] != ""; seq++ {
			all += frames[seq]
		}
		if all == want {
			see()
		}
	}
	go func() {
		r := buffer.NewReader(l.link)
		for {
			f, err := r.Next()
			if err != nil {
				return
			}
			take(f)
		}
	}()
	go func() {
		for {
			b, err := l.link.ReceiveDatagram()
			if err != nil {
				return
			}
			for len(b) > 0 {
				f, n, err := buffer.Parse(b)
				if err != nil {
					l.t.Errorf("a datagram that is no frame: %v", err)
					return
				}
				take(f)
				b = b[n:]
			}
		}
	}()
	select {
	case <-seen:
	case <-time.After(rig.Patience):
		mu.Lock()
		defer mu.Unlock()
		l.t.Errorf("printed %v, want %q", frames, want)
	}
}

// A stream of frames that breaks the rules is closed, and the session goes on by
// the next.
func badStreams(t *testing.T, h *rig.Host) {
	instance := wire.InstanceID(random(16))
	first, attached := attach(t, h, &wire.Attach{Instance: instance, Session: "bad-streams", Mode: wire.ModeAttachOrCreate, Command: "exec sleep 1000"})
	first.link.Close()
	spoiled := frame(1, session.Stdin, "spoiled")
	spoiled[14] ^= 4
	var flood []byte
	for seq := uint64(1); len(flood) < 2<<20; seq++ {
		flood = append(flood, frame(seq, session.Stdin, string(random(60_000)))...)
	}
	for i, test := range []struct {
		send []byte
		why  string
	}{
		{spoiled, "frame checksum mismatch"},
		{random(3000), "frame (longer than allowed|checksum mismatch)"},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 1, 3, 0xff, 0xff, 0xff}, "frame longer than allowed"},
		{frame(5000, session.Stdin, "early"), "frame 5000 on a stream"},
		{frame(math.MaxUint64, session.Stdin, "last"), "frame 18446744073709551615, beyond the end"},
		{frame(0, session.Stdin, "none"), "sequence number 0"},
		{ackOf(1<<40, 0, 1<<50, 0, 0, 0, 0), "never sent"},
		{ackOf(1, 0, 1<<50, 1<<40, 0, 0, 0), "never sent"},
		{ackOf(1, 7), "protocol error: ack"},
		{frame(0, 0x82, ""), "protocol error: notice of 0 bytes"},
		{frame(0, 0x83, "\xff"), "protocol error: gap"},
		{flood, "bytes that were granted"},
	} {
		l := dialLane(t, h)
		l.say(message(t, proof(t, attached, uint64(i+1), instance)))
		l.want(&wire.Resumed{})
		from := h.Log.Len()
		go l.say(test.send) // as much as it takes
		l.end()
		h.Log.Await(t, from, regexp.MustCompile(`session=bad-streams .*`+test.why))
		ended := regexp.MustCompile(`session=bad-streams .*reason=.*`+test.why).FindAllString(h.Log.String()[from:], -1)
		if len(ended) != 1 {
			t.Errorf("%d lines in the log, want 1:\n%s", len(ended), strings.Join(ended, "\n"))
		}
	}
}

// Datagrams that are no frames are dropped; those that come twice or late are
// nothing unusual; what must not be said ends the lane as on a stream.
func badDatagrams(t *testing.T, h *rig.Host) {
	l := dialLane(t, h)
	for n := range 50 { // not before login either
		l.link.SendDatagram(random(n * 20))
	}
	instance := wire.InstanceID(random(16))
	l.say(message(t, &wire.Hello{}), ticket(t, h),
		message(t, &wire.Attach{Instance: instance, Session: "bad-datagrams", Mode: wire.ModeAttachOrCreate, Command: "cat"}))
	var attached wire.Attached
	l.want(&attached)
	junk := func() {
		for _, b := range [][]byte{{}, {0}, make([]byte, 16), random(16), random(1000), random(carrier.MaxDatagram),
			frame(1, session.Stdin, "cut")[:15], frame(5000, session.Stdin, "early"), frame(0, 0xfe, "unknown"),
			append(frame(0, 0x81, "\x01"), random(30)...)} {
			if err := l.link.SendDatagram(b); err != nil {
				t.Fatalf("datagram of %d bytes: %v", len(b), err)
			}
		}
	}
	junk()
	for _, seq := range []uint64{3, 2, 3, 1, 1, 3, 5, 4, 2, 5} {
		if err := l.link.SendDatagram(frame(seq, session.Stdin, fmt.Sprintf("<%d>", seq))); err != nil {
			t.Fatal(err)
		}
		junk()
	}
	// Any of them may have been lost: the stream has all.
	for seq := uint64(1); seq <= 5; seq++ {
		l.say(frame(seq, session.Stdin, fmt.Sprintf("<%d>", seq)))
	}
	l.wantOutput("<1><2><3><4><5>")
	l.link.Close()
	if lines := complaints(h, 0, "session=bad-datagrams"); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}

	from := h.Log.Len()
	l = dialLane(t, h)
	l.say(message(t, proof(t, &attached, 1, instance)))
	l.want(&wire.Resumed{})
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.end()
	}()
	for done := false; !done; { // one may be lost
		l.link.SendDatagram(ackOf(1<<40, 0, 0, 0, 0, 0, 0))
		select {
		case <-over:
			done = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	h.Log.Await(t, from, regexp.MustCompile(`session=bad-datagrams .*reason="datagram: protocol error: ack of frames`))
}

// Packets that are no QUIC, or hardly.
func badPackets(t *testing.T, h *rig.Host) {
	c, err := net.Dial("udp", h.Addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 300 {
		b := random(5 * i)
		if len(b) > 20 {
			switch i % 5 {
			case 0: // a long header of version 1
				copy(b, "\xc3\x00\x00\x00\x01")
			case 1: // of no version
				copy(b, "\xc3\x00\x00\x00\x00")
			case 2: // of an unknown one, with an id that is too long
				copy(b, "\xff\x1a\x2a\x3a\x4a\xff")
			case 3: // a short header
				b[0] = 0x40
			}
		}
		c.Write(b)
	}
}

// Those who ask for a grant are not listened to.
func badGrants(t *testing.T, h *rig.Host) {
	sockets, _ := filepath.Glob(h.Path("run/qtd.sock"))
	more, _ := filepath.Glob(h.Path("run/*/qtd.sock"))
	sockets = append(sockets, more...)
	if len(sockets) != 1 {
		t.Fatalf("sockets for grants: %q", sockets)
	}
	for i := range 30 {
		c, err := net.Dial("unix", sockets[0])
		if err != nil {
			t.Fatal(err)
		}
		if i%3 != 0 {
			c.Write(random(i * 1000)) // as much as it takes
		}
		if i%2 == 0 {
			c.Close()
			continue
		}
		defer c.Close()
	}
	ticket(t, h)
}

// Those who do not come to the point are sent away in time, and keep nobody out
// who is in.
func TestSilence(t *testing.T) {
	h := newHost(t)
	h.Settings["auth_timeout"] = `"1s"`
	h.Settings["max_unauthenticated"] = "48" // 12 of one source
	h.Start()
	x := h.Shell(h.Addr)
	hello, list := message(t, &wire.Hello{}), message(t, &wire.List{})
	key := message(t, &wire.Hello{User: me(t), Keys: [][]byte{h.Key.Marshal()}})
	start := time.Now()
	var wg sync.WaitGroup
	denied, offer := message(t, &wire.Denied{}), message(t, &wire.Offer{Keys: [][]byte{h.Key.Marshal()}})
	for name, test := range map[string]struct {
		say  []byte
		slow bool   // a byte at a time
		told []byte // before the end
	}{
		"nothing":        {},
		"half a header":  {say: hello[:2]},
		"half a hello":   {say: hello[:len(hello)-1]},
		"a claim":        {say: claim(wire.TypeHello, wire.MaxMessage)},
		"a slow claim":   {say: append(claim(wire.TypeHello, wire.MaxMessage), make([]byte, 5000)...), slow: true},
		"half a resume":  {say: message(t, &wire.Resume{})[:50]},
		"hello":          {say: hello},
		"half a ticket":  {say: append(bytes.Clone(hello), claim(wire.TypeTicket, 32)...)},
		"a slow ticket":  {say: append(append(bytes.Clone(hello), claim(wire.TypeTicket, 5000)...), make([]byte, 5000)...), slow: true},
		"no proof":       {say: append(bytes.Clone(hello), list...)},
		"offer unheeded": {say: append(bytes.Clone(key), list...), told: offer},
	} {
		l := dialLane(t, h)
		wg.Go(func() {
			if test.slow {
				go func() {
					for i := range test.say {
						if _, err := l.link.Write(test.say[i : i+1]); err != nil {
							return
						}
						time.Sleep(20 * time.Millisecond)
					}
				}()
			} else if len(test.say) > 0 {
				l.say(test.say)
			}
			said, found := bytes.CutPrefix(l.end(), test.told)
			if !found || len(said) > 0 && !bytes.Equal(said, denied) {
				t.Errorf("%s: told %x", name, said)
			}
			l.wantLogged("")
		})
	}
	// More of them than may be, while one that is in goes on.
	refused := 0
	for range 20 {
		link, err := tryDial(h.Addr)
		if err != nil {
			refused++
			continue
		}
		defer link.Close()
	}
	x.Run("echo st''ill in", "still in")
	if refused == 0 {
		t.Error("no client was refused with too many on their way in")
	}
	wg.Wait()
	if d := time.Since(start); d < time.Second {
		t.Errorf("sent away after %v, before auth_timeout", d)
	}
	x.Run("echo and st''ill", "and still")
	h.Log.Await(t, 0, regexp.MustCompile(fmt.Sprintf(`(?s)(client refused.*no stream.*){%d}`, 20-refused)))
	ok(t, h.QT("connect", "echo in"), "in\n")
}
