//go:build linux || darwin

package holder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
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

// wantClosed returns all bytes that come, and checks that the connection ends then.
func wantClosed(t testing.TB, why string, c io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the connection stays open", why)
	}
	return b
}

// Anything but a request ends in one line in the log and a closed connection.
func TestBadRequests(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
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
	if w.over() || w.program.Signals() != nil {
		t.Error("the session has changed")
	}
	good.ping()
}

// A connection that stalls before its request is complete is closed after requestTime.
func TestSlowRequests(t *testing.T) {
	t.Parallel()
	w := onSocket(t, wire.Launch{PTY: true})
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

// A descriptor that is no datagram socket is refused, and none is left open.
func TestBadDescriptors(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
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
	ours, theirs, err := unixsock.DatagramPair()
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
		t.Skip("the system does not list open descriptors")
	}
	return len(entries)
}
