//go:build linux

package work

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An attacker is the process of an [Attack].
type attacker struct {
	Attack
	server  netip.AddrPort
	session wire.SessionID // of floods
	uid     uint32
	user    string
	key     *auth.UserKey
	dir     string // of a hostile account's sockets

	hello    []byte         // of [clientHello]
	udp      []*net.UDPConn // one a source
	dialing  atomic.Int64   // connections that exist
	sent     atomic.Int64   // packets, or connections that were dialed
	answered atomic.Int64   // connections that got an answer, also a refusal
}

// run writes a line when the attack is at its worst, and returns when standard input ends.
func (a *attacker) run(in io.Reader, out io.Writer) error {
	if one, ok := floods[a.What]; ok {
		return a.flood(in, out, one)
	}
	use, ok := attacks[a.What]
	if !ok {
		return fmt.Errorf("no attack is called %q", a.What)
	}
	if a.Sockets > 0 { // it begins as root and continues as the account
		if err := fakeHolders(a.dir, a.Sockets); err != nil {
			return err
		}
	}
	var tried, number atomic.Int64
	for n := range a.Connections {
		go func() {
			for first := true; ; first = false {
				c, err := a.dial(int64(n))
				if first && tried.Add(1) == int64(a.Connections) {
					fmt.Fprintln(out, "tried")
				}
				if err == nil {
					use(a, c, number.Add(1))
					c.Close()
				}
				time.Sleep(time.Second)
			}
		}()
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

// source returns address number n of the attackers.
func (a *attacker) source(n int64) net.IP {
	n %= int64(a.Sources)
	network := [2]byte{127, 0}
	if a.Rate > 0 {
		network = [2]byte{10, 200}
	}
	return net.IPv4(network[0], network[1], byte(1+n/250), byte(1+n%250))
}

// dial connects from a source.
func (a *attacker) dial(n int64) (*quic.Conn, error) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: a.source(n)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}}
	return quic.Dial(ctx, &quic.Socket{UDPConn: socket}, a.server, conf)
}

// attacks are what each connection does, by the name of an attack. The connection is closed afterwards.
var attacks = map[string]func(a *attacker, c *quic.Conn, number int64){
	// A stranger who connects and sends nothing.
	"silent": func(_ *attacker, c *quic.Conn, _ int64) { <-c.Context().Done() },

	// A client that logs in to an account whose home does not answer: that of [program.HungHome].
	"hung": func(_ *attacker, c *quic.Conn, _ int64) {
		c.Write(append(message(&wire.Hello{User: program.Stranger, Keys: [][]byte{[]byte("key")}}), message(&wire.List{})...))
		<-c.Context().Done()
	},

	// An account, [program.Stranger], that may log in. Its directory is full of sockets whose holders answer with
	// as much as a message may have. Its connections ask for listings: a few at once again after each answer, on the
	// others there is as much behind the request as the daemon takes.
	"hostile": func(a *attacker, c *quic.Conn, number int64) {
		const listers = 25 // one of so many connections lists without end
		list(c, a.key, number%listers == 0)
	},
}
