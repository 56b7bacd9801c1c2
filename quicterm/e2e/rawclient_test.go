//go:build linux || darwin

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A rawConn is a connection over QUIC or TCP.
type rawConn interface {
	carrier.Carrier
	carrier.Addressed
	auth.Encrypted
	CloseWrite() error
}

// A rawClient is a connection to the daemon that may send anything.
type rawClient struct {
	t        *testing.T
	h        *rig.Host
	conn     rawConn
	logName  string // names the client in the log
	logStart int    // length of the log when it connected: ports are reused
}

// dialRaw connects to the daemon and sends nothing.
func dialRaw(t *testing.T, h *rig.Host) *rawClient {
	t.Helper()
	start := h.Log.Len()
	conn, err := tryDial(h.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rawClient{t: t, h: h, conn: conn, logStart: start, logName: fmt.Sprintf("127.0.0.1:%d ", conn.LocalAddr().Port())}
}

// dialRawTCP is dialRaw over TCP. On Linux it has another source address than QUIC: both may have
// the same port.
func dialRawTCP(t *testing.T, h *rig.Host) *rawClient {
	t.Helper()
	start := h.Log.Len()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	if runtime.GOOS == "linux" {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	}
	conn, err := tcp.Dial(ctx, d.DialContext, h.Addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rawClient{t: t, h: h, conn: conn, logStart: start, logName: conn.LocalAddr().String() + " "}
}

// A rawDialer is dialRaw or dialRawTCP.
type rawDialer func(*testing.T, *rig.Host) *rawClient

// tryDial connects to a daemon that may refuse the connection.
func tryDial(addr netip.AddrPort) (*quic.Conn, error) {
	socket, err := quic.ListenUDP("")
	if err != nil {
		return nil, err
	}
	return quic.Dial(context.Background(), socket, addr,
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}})
}

// attachRaw opens a session on a new connection.
func attachRaw(t *testing.T, h *rig.Host, req *wire.Attach) (*rawClient, *wire.Attached) {
	t.Helper()
	c := dialRaw(t, h)
	c.send(encode(t, &wire.Hello{}), newToken(t, h), encode(t, req))
	attached := new(wire.Attached)
	c.wantMessage(attached)
	return c, attached
}

// answer returns the proof that the client has a key, at a time.
func (c *rawClient) answer(key *auth.UserKey, at []byte) []byte {
	c.t.Helper()
	statement, err := auth.NewStatement(c.conn.TLS(), accountName(c.t), at)
	if err != nil {
		c.t.Fatal(err)
	}
	signature, err := key.Sign(statement)
	if err != nil {
		c.t.Fatal(err)
	}
	return encode(c.t, &wire.Answer{Key: key.Public.Marshal(), Signature: signature, Host: statement.Host[:], Time: at})
}

// now is the time of a client whose clock is right.
func now() []byte { return auth.ClientTime(time.Now()) }

// send writes all parts at once. It ignores errors: the daemon may close the
// connection before it has read all, and the test checks what the daemon answers.
func (c *rawClient) send(parts ...[]byte) { c.conn.Write(bytes.Join(parts, nil)) }

// read calls f with the connection. It closes the connection and fails the test if
// f takes longer than rig.Patience.
func (c *rawClient) read(f func(r io.Reader)) {
	c.t.Helper()
	timer := time.AfterFunc(rig.Patience, func() {
		c.t.Errorf("%s: the daemon sends nothing, and does not close the connection", c.logName)
		c.conn.Close()
	})
	defer timer.Stop()
	f(c.conn)
}

// readMessage returns the next message.
func (c *rawClient) readMessage() (m wire.Message) {
	c.t.Helper()
	c.read(func(r io.Reader) {
		var err error
		if m, err = wire.Read(r, wire.MaxMessage); err != nil {
			c.t.Fatalf("no answer: %v", err)
		}
	})
	return m
}

// wantMessage decodes the next message, which must have the type of v.
func (c *rawClient) wantMessage(v wire.Body) {
	c.t.Helper()
	if err := c.readMessage().Decode(v); err != nil {
		c.t.Fatal(err)
	}
}

// readToEnd returns what the daemon sends until it ends the connection, and closes it.
func (c *rawClient) readToEnd() (b []byte) {
	c.read(func(r io.Reader) { b, _ = io.ReadAll(r) })
	c.conn.Close()
	return b
}

// wantEnd checks that the daemon sends exactly these bytes, and ends the connection.
func (c *rawClient) wantEnd(want []byte) {
	c.t.Helper()
	if got := c.readToEnd(); !bytes.Equal(got, want) {
		c.t.Errorf("received %x before the end, want %x", got, want)
	}
}

// wantDenied checks that the daemon ends the connection with a denial, and logs why
// in one line.
func (c *rawClient) wantDenied(why string) {
	c.t.Helper()
	c.wantEnd(encode(c.t, &wire.Denied{}))
	c.wantLogged(why)
}

// wantDropped checks that the daemon ends the connection without an answer, and logs
// why in one line.
func (c *rawClient) wantDropped(why string) {
	c.t.Helper()
	c.wantEnd(nil)
	c.wantLogged(why)
}

// wantLogged checks that the log has exactly one warning about the connection, and
// that it matches why.
func (c *rawClient) wantLogged(why string) {
	c.t.Helper()
	c.h.Log.Await(c.t, c.logStart, regexp.MustCompile("(level=WARN|level=ERROR).*"+c.logName+".*"+why))
	if lines := warnings(c.h, c.logStart, c.logName); len(lines) != 1 {
		c.t.Errorf("%d lines in the log, want 1:\n%s", len(lines), strings.Join(lines, ""))
	}
}

// warnings returns the log's warnings and errors that contain a text, from an offset
// on.
func warnings(h *rig.Host, from int, text string) []string {
	var found []string
	for line := range strings.Lines(h.Log.String()[from:]) {
		warning := strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR")
		if warning && strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// wantOutput waits until the session has printed exactly this, on stream and
// datagrams together.
func (c *rawClient) wantOutput(want string) {
	c.t.Helper()
	var mu sync.Mutex
	frames := map[uint64]string{}
	complete := make(chan struct{})
	completed := sync.OnceFunc(func() { close(complete) })
	receive := func(f buffer.Frame) {
		mu.Lock()
		defer mu.Unlock()
		if f.Type == wire.Stdout {
			frames[f.Seq] = string(f.Payload)
		}
		all := ""
		for seq := uint64(1); frames[seq] != ""; seq++ {
			all += frames[seq]
		}
		if all == want {
			completed()
		}
	}
	go func() {
		r := buffer.NewReader(c.conn)
		for {
			f, err := r.Next()
			if err != nil {
				return
			}
			receive(f)
		}
	}()
	go func() {
		for {
			b, err := c.conn.ReceiveDatagram()
			if err != nil {
				return
			}
			codec := buffer.ShortCodec{Near: 1}
			for len(b) > 0 {
				f, n, err := codec.Parse(b)
				if err != nil {
					c.t.Errorf("malformed datagram: %v", err)
					return
				}
				receive(f)
				b = b[n:]
			}
		}
	}()
	select {
	case <-complete:
	case <-time.After(rig.Patience):
		mu.Lock()
		defer mu.Unlock()
		c.t.Errorf("printed %v, want %q", frames, want)
	}
}

// newToken returns a Token message with a fresh token of the daemon.
func newToken(t *testing.T, h *rig.Host) []byte {
	t.Helper()
	g, err := bootstrap.Ask(h.Path("run"), func() error { return errors.New("no daemon") })
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, &wire.Token{Token: g.Token})
}

// newResume returns the nth Resume of the instance that opened a session.
func newResume(a *wire.Attached, n uint64, instance wire.InstanceID) *wire.Resume {
	r := &wire.Resume{UID: a.UID, ID: a.ID, Instance: instance, Boot: a.Boot, N: n}
	r.Proof = auth.Proof(a.Secret, r.Statement())
	return r
}

// resume resumes an attachment, and returns the carrier of its frames.
func (c *rawClient) resume(a *wire.Attached, n uint64, instance wire.InstanceID) carrier.Carrier {
	c.t.Helper()
	r := newResume(a, n, instance)
	c.send(encode(c.t, r))
	c.wantMessage(&wire.Resumed{})
	fromClient, fromHolder := auth.SealKeys(a.Secret, r.Statement())
	return sealed.New(c.conn, fromClient, fromHolder)
}

// encode returns the bytes of a message.
func encode(t *testing.T, v wire.Body) []byte {
	t.Helper()
	m, err := wire.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return m.Append(nil)
}

// header returns the header of a message whose body has a length.
func header(typ wire.Type, length int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(typ)<<24|uint32(length))
}

func frame(seq uint64, typ buffer.Type, payload string) []byte {
	return buffer.AppendFrame(nil, buffer.Frame{Seq: seq, Type: typ, Payload: []byte(payload)})
}

// ackFrame returns an ack with the first fields given.
func ackFrame(values ...uint64) []byte {
	b := []byte{1<<(len(values)-1) - 1}
	for _, v := range values {
		b = binary.AppendUvarint(b, v)
	}
	return frame(0, 0x80, string(b))
}
