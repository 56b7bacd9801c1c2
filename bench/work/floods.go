//go:build linux

package work

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A flooder is the process of a [NetworkFlood]: clients of one daemon at many addresses, which do something
// at a rate until standard input ends.
type flooder struct {
	server   netip.AddrPort
	sources  int
	sent     atomic.Int64 // packets, or connections that were dialed
	answered atomic.Int64 // connections that got an answer, also a refusal

	hello   []byte         // of [clientHello]
	udp     []*net.UDPConn // one a source
	dialing atomic.Int64   // connections that exist

	session wire.SessionID // of the flood of resumes
	uid     uint32
	user    string // of the flood of refused logins
	key     *auth.UserKey
}

// floods are what happens at once, by the name of a flood. What number n does must not block if it
// sends packets.
var floods = map[string]func(f *flooder, n int64){
	"junk":    (*flooder).junk,
	"halves":  (*flooder).half,
	"resumes": (*flooder).resume,
	"refused": (*flooder).refused,
	"logins":  (*flooder).login,
}

// source returns address number n of the attackers.
func (f *flooder) source(n int64) net.IP {
	n %= int64(f.sources)
	return net.IPv4(10, 200, byte(1+n/250), byte(1+n%250))
}

// run is the process of a flood. It writes a line when the flood begins and another one, with what
// it has done, when it is over.
func (f *flooder) run(in io.Reader, out io.Writer, what string, rate int, identity string) error {
	one, ok := floods[what]
	if !ok {
		return fmt.Errorf("no flood is called %q", what)
	}
	var err error
	if f.key, err = auth.IdentityFile(identity, nil); err != nil {
		return err
	}
	if f.hello, err = clientHello(); err != nil {
		return err
	}
	for n := range f.sources {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: f.source(int64(n))}, net.UDPAddrFromAddrPort(f.server))
		if err != nil {
			return err
		}
		f.udp = append(f.udp, c)
		go f.receive(c)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		io.Copy(io.Discard, in)
	}()
	fmt.Fprintln(out, "begins")
	pace(rate, func(n int64) { one(f, n) }, over)
	fmt.Fprintln(out, f.sent.Load(), f.answered.Load())
	return nil
}

// pace calls a function at a rate a second, until over is closed.
func pace(rate int, one func(n int64), over <-chan struct{}) {
	const step = 5 * time.Millisecond
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for began, n := time.Now(), int64(0); ; {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		due := int64(time.Since(began).Seconds() * float64(rate))
		n = max(n, due-int64(rate)/10) // what a busy machine kept it from is not made up for
		for ; n < due; n++ {
			one(n)
		}
	}
}

// receive answers Retry with an Initial that has its token, and nothing else.
func (f *flooder) receive(c *net.UDPConn) {
	b := make([]byte, 2048)
	for {
		n, err := c.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if id, token, ok := retried(b[:n]); err == nil && ok {
			f.answered.Add(1)
			c.Write(initial(id, token, f.hello))
		}
	}
}

// send sends a packet from one of the sources.
func (f *flooder) send(n int64, packet []byte) {
	if _, err := f.udp[n%int64(len(f.udp))].Write(packet); err == nil {
		f.sent.Add(1)
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 8 {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], rand.Uint64())
		copy(b[i:], word[:])
	}
	return b
}

// junk sends a packet that no client sends: random bytes, packets of connections that do not exist,
// and Initials of which some have the right form. One in 200 is a TCP connection with random bytes.
func (f *flooder) junk(n int64) {
	const perTCP = 200
	id := random(idSize)
	long := func(first byte, version uint32) []byte {
		b := longHeader(first, version, id)
		if first == firstInitial {
			b = appendLength(b, 0)
		}
		b = appendLength(b, initialSize-len(b)-2)
		return append(b, random(initialSize-len(b))...)
	}
	switch rand.IntN(8) { // not by n, which says the address
	case 0:
		f.send(n, random(1+rand.IntN(initialSize)))
	case 1: // a packet of a connection
		f.send(n, append([]byte{0x40}, random(80)...))
	case 2:
		f.send(n, long(firstInitial, version1))
	case 3:
		f.send(n, long(firstInitial, 0x1a2a3a4a))
	case 4:
		f.send(n, long(firstZeroRTT, version1))
	case 5:
		f.send(n, long(firstHandshake, version1))
	case 6:
		f.send(n, initial(id, nil, random(300)))
	case 7:
		f.send(n, initial(id, random(60), f.hello))
	}
	if n%perTCP == 0 {
		go f.overTCP(n/perTCP, func(c net.Conn) { c.Write(random(4 << 10)) })
	}
}

// half begins a handshake: over QUIC, or one in 20 over TCP, and only waits then.
func (f *flooder) half(n int64) {
	const perTCP = 20
	if n%perTCP > 0 {
		f.send(n, initial(random(idSize), nil, f.hello))
		return
	}
	f.sent.Add(1)
	go f.overTCP(n/perTCP, func(c net.Conn) {
		tls.Client(mute{c}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}, ServerName: auth.ServerName(nil)}).Handshake()
	})
}

// overTCP connects, sends something and waits until the daemon closes the connection.
func (f *flooder) overTCP(n int64, send func(c net.Conn)) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: f.source(n)}, Timeout: 5 * time.Second}
	c, err := d.Dial("tcp", f.server.String())
	if err != nil {
		return
	}
	defer c.Close()
	send(c)
	io.Copy(io.Discard, c)
}

// A mute is a connection on which nothing is ever received.
type mute struct{ net.Conn }

func (m mute) Read([]byte) (int, error) {
	io.Copy(io.Discard, m.Conn)
	return 0, io.EOF
}

// maxDialing bounds the connections that a flooder has at once.
const maxDialing = 500

// connect makes a connection from one of the sources, unless there are too many, sends messages and
// waits for an answer. A daemon that has too many clients refuses the connection instead.
func (f *flooder) connect(n int64, messages func(c *quic.Conn) ([]byte, error)) {
	if f.dialing.Add(1) > maxDialing {
		f.dialing.Add(-1)
		return
	}
	f.sent.Add(1)
	go func() {
		defer f.dialing.Add(-1)
		if err := f.exchange(n, messages); err == nil || quic.Refused(err) {
			f.answered.Add(1)
		}
	}()
}

// exchange connects, sends messages and reads the answer.
func (f *flooder) exchange(n int64, messages func(c *quic.Conn) ([]byte, error)) error {
	c, err := dialFrom(f.source(n), f.server)
	if err != nil {
		return err
	}
	defer c.Close()
	b, err := messages(c)
	if err != nil {
		return err
	}
	stop := time.AfterFunc(5*time.Second, func() { c.Close() })
	defer stop.Stop()
	c.Write(b)
	_, err = wire.Read(c, wire.MaxMessage)
	return err
}

// resume tries to resume the session with a proof that is wrong.
func (f *flooder) resume(n int64) {
	f.connect(n, func(*quic.Conn) ([]byte, error) {
		m := &wire.Resume{UID: f.uid, ID: f.session, N: uint64(n), Proof: [32]byte(random(32))}
		return message(m), nil
	})
}

// refused logs in with a key that the account does not accept.
func (f *flooder) refused(n int64) {
	f.connect(n, func(*quic.Conn) ([]byte, error) {
		blob := f.key.Public.Marshal()
		blob[len(blob)-1]++
		return append(message(&wire.Hello{User: f.user, Keys: [][]byte{blob}}), message(&wire.List{})...), nil
	})
}

// login logs in as [program.Stranger], which accepts the key, and asks for a listing.
func (f *flooder) login(n int64) {
	f.connect(n, func(c *quic.Conn) ([]byte, error) {
		answer, err := answer(c, f.key)
		if err != nil {
			return nil, err
		}
		b := message(&wire.Hello{User: program.Stranger, Keys: [][]byte{answer.Key}})
		b = append(b, message(answer)...)
		return append(b, message(&wire.List{})...), nil
	})
}

// answer proves, on a connection, that the client is [program.Stranger], which accepts the key.
func answer(c *quic.Conn, key *auth.UserKey) (*wire.Answer, error) {
	statement, err := auth.NewStatement(c.TLS(), program.Stranger, auth.ClientTime(time.Now()))
	if err != nil {
		return nil, err
	}
	signature, err := key.Sign(statement)
	return &wire.Answer{Key: key.Public.Marshal(), Signature: signature, Host: statement.Host[:], Time: statement.Time}, err
}
