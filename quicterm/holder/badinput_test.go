//go:build linux || darwin

package holder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// random returns n bytes, the same each time.
func random(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{7})
	source.Read(b)
	return b
}

// header returns the header of a message that claims a length.
func header(typ wire.Type, length int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(typ)<<24|uint32(length))
}

// wantClosed checks that nothing but some bytes comes, and then the end.
func wantClosed(t testing.TB, why string, c io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection stays open", why)
	}
	return b
}

// Whatever comes instead of a request ends in one line of the log and a closed
// connection.
func TestBadRequests(t *testing.T) {
	w := onSocket(t, wire.Spec{PTY: true})
	good := w.attach("good@x")
	open := mustEncode(t, &wire.Open{Client: "bad@x"}).Append([]byte{0})
	attach := mustEncode(t, &wire.Attach{PTY: true}).Append(nil)
	resume := mustEncode(t, good.statement()).Append(nil)
	tests := []struct {
		why      string
		send     []byte
		answered wire.Type
	}{
		{why: "nothing"},
		{why: "first byte alone", send: open[:1]},
		{why: "random bytes", send: random(100)},
		{why: "many random bytes", send: random(1 << 20)},
		{why: "zeros", send: make([]byte, 4096)},
		{why: "all ones", send: bytes.Repeat([]byte{0xff}, 4096)},
		{why: "header cut", send: open[:3]},
		{why: "open cut", send: open[:len(open)-1]},
		{why: "no request", send: open},
		{why: "open claims too much", send: append([]byte{0}, header(wire.TypeOpen, wire.MaxMessage+1)...)},
		{why: "open claims 16 MiB", send: append([]byte{0}, header(wire.TypeOpen, 1<<24-1)...)},
		{why: "request claims too much", send: append(bytes.Clone(open), header(wire.TypeAttach, wire.MaxMessage+1)...)},
		{why: "request cut", send: append(bytes.Clone(open), attach[:len(attach)-1]...)},
		{why: "request without open", send: append([]byte{0}, attach...)},
		{why: "attach of garbage", send: append(append(bytes.Clone(open), header(wire.TypeAttach, 100)...), random(100)...)},
		{why: "attach of nothing", send: append(bytes.Clone(open), header(wire.TypeAttach, 0)...)},
		{why: "attach of an array", send: append(append(bytes.Clone(open), header(wire.TypeAttach, 1)...), 0x80)},
		{why: "resume too short", send: append(append(bytes.Clone(open), header(wire.TypeResume, wire.ResumeSize-1)...), resume[4:len(resume)-1]...)},
		{why: "resume too long", send: append(append(append(bytes.Clone(open), header(wire.TypeResume, wire.ResumeSize+1)...), resume[4:]...), 0)},
		{why: "open twice", send: append(bytes.Clone(open), open[1:]...), answered: wire.TypeError},
		{why: "answer instead of a request", send: append(bytes.Clone(open), mustEncode(t, &wire.Done{}).Append(nil)...), answered: wire.TypeError},
	}
	for i, test := range tests {
		c := dial(t, w.path)
		if _, err := c.Write(test.send); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("%s: %v", test.why, err)
		}
		c.CloseWrite()
		b := wantClosed(t, test.why, c)
		c.Close()
		logged := 1
		if test.answered != 0 {
			logged = 0
			if m, err := wire.Read(bytes.NewReader(b), wire.MaxMessage); err != nil || m.Type != test.answered {
				t.Errorf("%s: answered with %x", test.why, b)
			}
		} else if len(b) > 0 {
			t.Errorf("%s: answered with %x", test.why, b)
		}
		w.awaitLog(logged, "daemon refused")
		if i%5 == 0 {
			good.ping()
		}
		w.log.clear()
	}
	if w.over() || w.h.program.(*stub).got() != nil {
		t.Error("the session has changed")
	}
	good.ping()
}

// Who connects and does not go on is not waited for.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	w := onSocket(t, wire.Spec{PTY: true})
	open := mustEncode(t, &wire.Open{Client: "bad@x"}).Append([]byte{0})
	start := time.Now()
	var silent []*net.UnixConn
	for n := 0; n <= len(open); n += 3 {
		c := dial(t, w.path)
		defer c.Close()
		c.SetDeadline(start.Add(requestTime + 20*time.Second))
		c.Write(open[:n])
		silent = append(silent, c)
	}
	good := w.attach("good@x")
	good.ping()
	for _, c := range silent {
		wantClosed(t, "silence", c)
	}
	if d := time.Since(start); d < requestTime {
		t.Errorf("closed after %v, before %v", d, requestTime)
	}
	w.awaitLog(len(silent), "daemon refused")
	good.ping()
}

// What is passed with the first byte and is no socket for datagrams is refused,
// and no descriptor is left open.
func TestBadDescriptors(t *testing.T) {
	w := onSocket(t, wire.Spec{PTY: true})
	good := w.attach("good@x")
	good.ping()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer p.Close()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	udpFile, err := udp.File()
	if err != nil {
		t.Fatal(err)
	}
	defer udpFile.Close()
	ours, theirs, err := carrier.DatagramPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	query := mustEncode(t, &wire.Query{}).Append(mustEncode(t, &wire.Open{}).Append(nil))
	tests := []struct {
		why     string
		files   []*os.File
		refused bool
	}{
		{"a file", []*os.File{file}, true},
		{"a pipe", []*os.File{p}, true},
		{"a socket of another family", []*os.File{udpFile}, true},
		{"one too many", []*os.File{theirs, file}, false},
		{"many", []*os.File{theirs, file, p, r, udpFile, theirs, theirs}, false},
	}
	before := descriptors(t)
	for _, test := range tests {
		c := dial(t, w.path)
		fds := make([]int, len(test.files))
		for i, f := range test.files {
			fds[i] = int(f.Fd())
		}
		if _, _, err := c.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
		c.Write(query)
		b := wantClosed(t, test.why, c)
		c.Close()
		if test.refused != (len(b) == 0) {
			t.Errorf("%s: answered with %x", test.why, b)
		}
		if test.refused {
			w.awaitLog(1, "daemon refused")
		}
		w.log.clear()
	}
	w.await("all descriptors to be closed", func() bool { return descriptors(t) <= before })
	good.ping()
}

// descriptors returns how many descriptors this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip("the system does not tell what is open")
	}
	return len(entries)
}

// frame encodes a frame.
func frame(seq uint64, typ buffer.Type, payload string) []byte {
	return buffer.AppendFrame(nil, buffer.Frame{Seq: seq, Type: typ, Payload: []byte(payload)})
}

// The types of frames that have no number, as in SPEC.md.
const (
	ackType    buffer.Type = 0x80
	pingType   buffer.Type = 0x81
	noticeType buffer.Type = 0x82
	gapType    buffer.Type = 0x83
)

// ackOf encodes the payload of an ack.
func ackOf(received, unconsumed, limit, highest uint64) string {
	var b []byte
	for _, v := range []uint64{received, unconsumed, limit, highest, 0, 0, 0} {
		b = binary.AppendUvarint(b, v)
	}
	return string(b)
}

// spoiled returns a frame with one bit of it changed.
func spoiled(bit int) []byte {
	b := frame(1, session.Stdin, "spoiled")
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// flood returns frames in order, of more bytes than are granted.
func flood() []byte {
	var b []byte
	for seq := uint64(1); len(b) < 3<<20; seq++ {
		b = append(b, frame(seq, session.Stdin, string(make([]byte, 60_000)))...)
	}
	return b
}

// badStreams are what no stream may bring.
var badStreams = []struct {
	why    string
	send   []byte
	reason string // in the log
}{
	{"random bytes", random(1 << 16), "stream: "},
	{"zeros", make([]byte, 16), "checksum"},
	{"spoiled checksum", spoiled(22*8 + 3), "checksum"},
	{"spoiled payload", spoiled(13 * 8), "checksum"},
	{"spoiled number", spoiled(7 * 8), "checksum"},
	{"spoiled length", append(spoiled(10*8), make([]byte, 300)...), "checksum"},
	{"too long", append(binary.BigEndian.AppendUint64(nil, 1), 3, 1, 0, 1), "longer than allowed"},
	{"cut in the header", frame(1, session.Stdin, "cut")[:9], ""},
	{"cut in the payload", frame(1, session.Stdin, "cut")[:13], ""},
	{"cut in the checksum", frame(1, session.Stdin, "cut")[:17], ""},
	{"far in the future", frame(1+reorderWindow, session.Stdin, "early"), "protocol error: frame 101 on a stream"},
	{"the last number", frame(math.MaxUint64, session.Stdin, "last"), "protocol error: frame 18446744073709551615, beyond"},
	{"no number", frame(0, session.Stdin, "none"), "protocol error: frame of type 0x3 with sequence number 0"},
	{"a numbered ack", frame(1, ackType, ackOf(1, 0, 1<<20, 0)), "protocol error: frame of type 0x80 with sequence number 1"},
	{"a numbered unknown", frame(1, 0xff, ""), "protocol error: frame of type 0xff"},
	{"ack of the future", frame(0, ackType, ackOf(1<<40, 0, 1<<50, 0)), "never sent"},
	{"highest of the future", frame(0, ackType, ackOf(1, 0, 1<<50, 1<<40)), "never sent"},
	{"ack of nothing", frame(0, ackType, ackOf(0, 0, 0, 0)), "protocol error: ack"},
	{"ack of less than nothing", frame(0, ackType, ackOf(1, 5, 0, 0)), "protocol error: ack"},
	{"empty ack", frame(0, ackType, ""), "protocol error: ack"},
	{"endless varint", frame(0, ackType, strings.Repeat("\xff", 40)), "protocol error: ack"},
	{"empty gap", frame(0, gapType, ""), "protocol error: gap"},
	{"gap back", append(frame(1, session.Resize, "some bytes"), frame(0, gapType, "\x09\x01")...), "protocol error: gap from offset"},
	{"gap to the last number", frame(0, gapType, string(binary.AppendUvarint(nil, math.MaxUint64))+"\x00"), "protocol error: gap to frame 18446744073709551615"},
	{"empty notice", frame(0, noticeType, ""), "protocol error: notice"},
	{"long notice", frame(0, noticeType, strings.Repeat("x", 1000)), "protocol error: notice"},
	{"more than is granted", flood(), "protocol error: frame"},
	{"compression of what", frame(0, session.Compression, ""), "protocol error: request for compression"},
	{"compressed unasked", frame(0, session.Compressed, "\x01\x00\x00\x00"), "protocol error: compressed frame"},
	{"compressed garbage", packed("\x01\x00\x01\x00garbage"), "bad compressed frame"},
	{"compressed beyond bounds", packed("\x01\xff\xff\xff"), "bad compressed frame"},
	{"compressed for ever", packed("\x01\x02\x00\x00" + bomb), "bad compressed frame"},
}

// packed asks for compression and brings a compressed frame.
func packed(payload string) []byte {
	return append(frame(0, session.Compression, "\x01"), frame(0, session.Compressed, payload)...)
}

// bomb is a zstd stream of 1000 blocks, each of 128 KiB of the same byte.
var bomb = "\x28\xb5\x2f\xfd\x00\x40" + strings.Repeat("\x02\x00\x10x", 1000)

// A stream that brings anything of that is closed, with one line of the log. The
// session goes on, for the same client and for others.
func TestBadStreams(t *testing.T) {
	w := onSocket(t, wire.Spec{PTY: true})
	for _, test := range badStreams {
		t.Run(test.why, func(t *testing.T) {
			w.t = t
			good := w.attach("good@x")
			good.ping()
			for _, role := range []string{"writer", "displaced"} {
				bad, link := w.join("bad@x")
				if role == "displaced" {
					good.hangUp()
					good = w.attach("good@x")
				}
				w.log.clear()
				ended := make(chan struct{})
				go func() { // for what the holder says
					defer close(ended)
					io.Copy(io.Discard, link)
				}()
				link.Write(test.send)
				if strings.HasPrefix(test.why, "cut") {
					link.Close()
				}
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					t.Fatalf("%s: the carrier is not closed", role)
				}
				link.Close()
				level := "level=WARN"
				if strings.HasPrefix(test.why, "cut") {
					level = "level=DEBUG"
				}
				w.awaitLog(1, "carrier ended", "client=bad@x", level, test.reason)
				w.awaitLog(1, "carrier ended", "client=bad@x")
				if role == "writer" {
					bad.resume()
					bad.hangUp()
					w.awaitLog(2, "carrier ended", "client=bad@x")
				} else {
					good.ping()
				}
			}
			good.hangUp()
		})
	}
}

// Datagrams that are no frames are dropped, and nobody is the worse for it.
func TestBadDatagrams(t *testing.T) {
	w := onSocket(t, wire.Spec{PTY: true})
	c, link := w.join("a@x")
	junk := [][]byte{
		{}, {0}, random(1), random(15), random(16), random(carrier.MaxDatagram), random(carrier.MaxDatagram + 1), random(5000),
		make([]byte, 16), spoiled(22 * 8), spoiled(0), frame(1, session.Stdin, "cut")[:18],
		append(binary.BigEndian.AppendUint64(nil, 1), 3, 1, 0, 1),
		frame(1+reorderWindow, session.Stdin, "early"), frame(1<<62, session.Stdin, "last"),
		append(frame(0, pingType, "\x01"), random(50)...),
		frame(0, 0xfe, "unknown"), frame(0, pingType, ""), frame(0, noticeType, "\xc8unknown"),
	}
	for range 3 {
		for _, b := range junk {
			if err := link.SendDatagram(b); err != nil {
				t.Fatalf("datagram of %d bytes: %v", len(b), err)
			}
		}
	}
	// In any order, and more than once.
	for _, seq := range []uint64{3, 1, 3, 1, 2, 2, 3, 1} {
		if err := link.SendDatagram(frame(seq, session.Stdin, string(rune('`'+seq)))); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		c.input.Append(session.Stdin, []byte("-"))
	}
	c.run(link, true)
	c.awaitOutput("abc")
	c.ping()
	if !strings.HasPrefix(c.output(), "abcping") {
		t.Errorf("output %q", c.output())
	}
	w.awaitLog(0, "carrier ended")
	w.locked(func(h *Holder) {
		n := h.writer.peer.Counters()
		if n.Corrupted == 0 || n.Beyond == 0 || n.Duplicates == 0 || n.Reordered == 0 {
			t.Errorf("counted %+v", n)
		}
	})
	c.hangUp()
}

// What is a frame, but must not be said, ends a carrier by a datagram as well.
func TestForbiddenDatagrams(t *testing.T) {
	w := onSocket(t, wire.Spec{PTY: true})
	for _, test := range badStreams {
		if !strings.HasPrefix(test.reason, "protocol error") && test.reason != "never sent" ||
			strings.Contains(test.reason, "on a stream") || len(test.send) > carrier.MaxDatagram {
			continue
		}
		_, link := w.join("bad@x")
		w.log.clear()
		for range 2 {
			link.SendDatagram(test.send)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			io.Copy(io.Discard, link)
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the carrier is not closed", test.why)
		}
		link.Close()
		w.awaitLog(1, "carrier ended", "datagram: ", test.reason)
	}
	w.attach("good@x").ping()
}

// Frames that make no sense, or that a client does not send, take their place in
// the log and do nothing.
func TestFramesWithoutEffect(t *testing.T) {
	w := onSocket(t, wire.Spec{PTY: true})
	a := w.attach("a@x")
	a.ping()
	a.send(session.Resize, "")
	a.send(session.Resize, "\x00\x50\x00")
	a.send(session.Signal, "")
	a.send(session.Signal, strings.Repeat("KILL", 1000))
	a.send(session.EOF, "\x01")
	a.send(session.EOF, "\x09")
	a.send(session.EOF, "")
	a.send(session.Closed, "")
	a.send(session.Closed, "\x01")
	a.send(session.Closed, "\xff")
	a.send(session.Stdout, "not mine to say")
	a.send(session.Stderr, "nor this")
	a.send(session.Exit, "\x00")
	a.send(0x0a, "unknown")
	a.send(0x7f, "")
	a.send(session.Stdin, "")
	a.ping()
	a.await("all to be consumed", func() bool { return a.peer.Consumed() == a.input.Next() })
	w.awaitLog(0, "level=WARN")
	if strings.Contains(a.output(), "mine") || len(w.program.got()) > 0 || w.program.Size() != (session.Size{}) {
		t.Errorf("output %q, signals %v, size %v", a.output(), w.program.got(), w.program.Size())
	}
}

// A client that says that it has lost what it never sent loses only that.
func TestGapsOfAClient(t *testing.T) {
	w := onSocket(t, wire.Spec{PTY: true})
	for _, payload := range []string{"\x05\x20", string(binary.AppendUvarint(binary.AppendUvarint(nil, math.MaxUint64), math.MaxUint64))} {
		bad, link := w.join("bad@x")
		link.Write(frame(0, gapType, payload))
		link.Write(frame(math.MaxUint64, session.Stdin, "wraps"))
		link.Write(frame(1, session.Stdin, "again"))
		link.Close()
		_ = bad
		good := w.attach("good@x")
		good.ping()
		good.hangUp()
		w.awaitLog(0, "level=ERROR")
	}
}
