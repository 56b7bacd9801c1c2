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
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// floods are what happens at once, by the name of a flood. What number n does must not block if it
// sends packets.
var floods = map[string]func(a *attacker, n int64){
	"junk":    (*attacker).junk,
	"halves":  (*attacker).half,
	"resumes": (*attacker).resume,
	"refused": (*attacker).refused,
	"logins":  (*attacker).login,
}

// flood writes a line when it begins, and another one, with what it has done, when it is over.
func (a *attacker) flood(in io.Reader, out io.Writer, one func(*attacker, int64)) (err error) {
	if a.hello, err = clientHello(); err != nil {
		return err
	}
	for n := range a.Sources {
		c, err := net.DialUDP("udp", &net.UDPAddr{IP: a.source(int64(n))}, net.UDPAddrFromAddrPort(a.server))
		if err != nil {
			return err
		}
		a.udp = append(a.udp, c)
		go a.receive(c)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		io.Copy(io.Discard, in)
		// A busy machine, on which attackers have the lowest priority, takes longer than the work for the first answer.
		for until := time.Now().Add(rig.Patience); a.answered.Load() == 0 && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	fmt.Fprintln(out, "begins")
	pace(a.Rate, func(n int64) { one(a, n) }, over)
	fmt.Fprintln(out, a.sent.Load(), a.answered.Load())
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
func (a *attacker) receive(c *net.UDPConn) {
	b := make([]byte, 2048)
	for {
		n, err := c.Read(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if id, token, ok := retried(b[:n]); err == nil && ok {
			a.answered.Add(1)
			c.Write(initial(id, token, a.hello))
		}
	}
}

// send sends a packet from one of the sources.
func (a *attacker) send(n int64, packet []byte) {
	if _, err := a.udp[n%int64(len(a.udp))].Write(packet); err == nil {
		a.sent.Add(1)
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
func (a *attacker) junk(n int64) {
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
		a.send(n, random(1+rand.IntN(initialSize)))
	case 1: // a packet of a connection
		a.send(n, append([]byte{0x40}, random(80)...))
	case 2:
		a.send(n, long(firstInitial, version1))
	case 3:
		a.send(n, long(firstInitial, 0x1a2a3a4a))
	case 4:
		a.send(n, long(firstZeroRTT, version1))
	case 5:
		a.send(n, long(firstHandshake, version1))
	case 6:
		a.send(n, initial(id, nil, random(300)))
	case 7:
		a.send(n, initial(id, random(60), a.hello))
	}
	if n%perTCP == 0 {
		go a.overTCP(n/perTCP, func(c net.Conn) { c.Write(random(4 << 10)) })
	}
}

// half begins a handshake: over QUIC, or one in 20 over TCP, and only waits then.
func (a *attacker) half(n int64) {
	const perTCP = 20
	if n%perTCP > 0 {
		a.send(n, initial(random(idSize), nil, a.hello))
		return
	}
	a.sent.Add(1)
	go a.overTCP(n/perTCP, func(c net.Conn) {
		tls.Client(mute{c}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN},
			ServerName: auth.ServerName(nil)}).Handshake()
	})
}

// overTCP connects, sends something and waits until the daemon closes the connection.
func (a *attacker) overTCP(n int64, send func(c net.Conn)) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: a.source(n)}, Timeout: 5 * time.Second}
	c, err := d.Dial("tcp", a.server.String())
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

// maxDialing bounds the connections that a flood has at once.
const maxDialing = 500

// connect makes a connection from one of the sources, unless there are too many, sends messages and
// waits for an answer. A daemon that has too many clients refuses the connection instead.
func (a *attacker) connect(n int64, messages func(c *quic.Conn) ([]byte, error)) {
	if a.dialing.Add(1) > maxDialing {
		a.dialing.Add(-1)
		return
	}
	a.sent.Add(1)
	go func() {
		defer a.dialing.Add(-1)
		if err := a.exchange(n, messages); err == nil || quic.Refused(err) {
			a.answered.Add(1)
		}
	}()
}

// exchange connects, sends messages and reads the answer.
func (a *attacker) exchange(n int64, messages func(c *quic.Conn) ([]byte, error)) error {
	c, err := a.dial(n)
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
func (a *attacker) resume(n int64) {
	a.connect(n, func(*quic.Conn) ([]byte, error) {
		m := &wire.Resume{UID: a.uid, ID: a.session, N: uint64(n), Proof: [32]byte(random(32))}
		return message(m), nil
	})
}

// refused logs in with a key that the account does not accept.
func (a *attacker) refused(n int64) {
	a.connect(n, func(*quic.Conn) ([]byte, error) {
		blob := a.key.Public.Marshal()
		blob[len(blob)-1]++
		return append(message(&wire.Hello{User: a.user, Keys: [][]byte{blob}}), message(&wire.List{})...), nil
	})
}

// login logs in as [program.Stranger], which accepts the key, and asks for a listing.
func (a *attacker) login(n int64) {
	a.connect(n, func(c *quic.Conn) ([]byte, error) {
		answer, err := answer(c, a.key)
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
	return &wire.Answer{Key: key.Public.Marshal(), Signature: signature, Host: statement.Host[:], Time: statement.Time},
		err
}
