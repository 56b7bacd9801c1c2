package serve

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/quota"
)

// Limits of strangers: connections that have not logged in.
const (
	// maxStrangers bounds them. If there are more, one of the source that has most goes.
	maxStrangers = 512

	// maxStrangersSource bounds those of a source: an IPv4 address or an IPv6 /64.
	maxStrangersSource = 64

	// connectRate is how many connections a second a source may begin, and connectBurst how many at once: those of a team
	// behind one address.
	connectRate  = 20
	connectBurst = 64

	// loginTime is how long a connection may take to log in.
	loginTime = 10 * time.Second

	// maxStrangerBytes bounds what a connection may send before it logs in: TLS' handshake, a request and a login have 8 KiB.
	maxStrangerBytes = 64 << 10

	// maxLoginsKey bounds the connections of a key.
	maxLoginsKey = 256
)

// A guest is a connection to the hub, and its other half to NATS.
type guest struct {
	conn, inner *net.TCPConn
	place       *quota.Place
	since       time.Time

	// Below a front's mutex.
	member *hub.Member // that has logged in, or nil
	id     hub.UserID
}

// end ends the connection.
func (g *guest) end() {
	g.conn.Close()
	g.inner.Close()
}

// A front accepts connections and copies their bytes to NATS and back, which has TLS: on Linux, the kernel copies.
type front struct {
	log   *slog.Logger
	rates *quota.Rates[netip.Prefix]

	mu     sync.Mutex
	places *quota.Places
	guests map[netip.AddrPort]*guest // by the address from which NATS sees them
	keys   map[hub.UserID]int        // logins
	hosts  map[string]*guest         // by name; one each
}

func newFront(log *slog.Logger) *front {
	return &front{
		log: log, rates: quota.NewRates[netip.Prefix](connectRate, connectBurst), places: quota.NewPlaces(maxStrangers),
		guests: make(map[netip.AddrPort]*guest), keys: make(map[hub.UserID]int), hosts: make(map[string]*guest),
	}
}

// serve accepts connections until ctx ends or the listener fails, and closes it. It has ended all when it returns.
func (f *front) serve(ctx context.Context, l net.Listener, engine netip.AddrPort) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { l.Close() })
	var pause time.Duration
	for {
		accepted, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				accepted.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // such as too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			f.log.Warn("accept", "error", err, "again in", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		conn, ok := accepted.(*net.TCPConn)
		if !ok {
			accepted.Close()
			continue
		}
		if place := f.admit(conn); place != nil {
			running.Go(func() { f.carry(ctx, conn, place, engine) })
		} else {
			conn.SetLinger(0)
			conn.Close()
		}
	}
}

// admit gives a stranger a place, or nil.
func (f *front) admit(conn *net.TCPConn) *quota.Place {
	address := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	p := &quota.Place{Source: quota.Source(address), Site: quota.Site(address), Evict: func() { conn.Close() }}
	now := time.Now()
	if !f.rates.Allow(now, p.Source) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places.Count(p.Source) >= maxStrangersSource || len(f.guests) >= maxLogins {
		return nil
	}
	if victim := f.places.Enter(now, p); victim != nil {
		victim.Evict()
	}
	return p
}

// carry copies the bytes of a connection until one of its ends closes, or ctx ends.
func (f *front) carry(ctx context.Context, conn *net.TCPConn, place *quota.Place, engine netip.AddrPort) {
	defer conn.Close()
	inner, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(engine))
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		place.Leave()
		f.log.Warn("reach NATS", "error", err)
		return
	}
	g := &guest{conn: conn, inner: inner, place: place, since: time.Now()}
	address := inner.LocalAddr().(*net.TCPAddr).AddrPort()
	f.mu.Lock()
	f.guests[address] = g
	f.mu.Unlock()
	defer f.leave(address, g)
	defer g.end()
	defer context.AfterFunc(ctx, g.end)()
	expiry := time.AfterFunc(loginTime, func() {
		if !f.known(g) {
			g.end()
		}
	})
	defer expiry.Stop()
	var back sync.WaitGroup
	defer back.Wait()
	back.Go(func() {
		defer g.end()
		io.Copy(conn, inner)
	})
	defer g.end()
	if _, err := io.CopyN(inner, conn, maxStrangerBytes); err != nil || !f.known(g) {
		return
	}
	io.Copy(inner, conn)
}

// known reports whether a connection has logged in.
func (f *front) known(g *guest) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return g.member != nil
}

func (f *front) find(address netip.AddrPort) *guest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.guests[netip.AddrPortFrom(address.Addr().Unmap(), address.Port())]
}

// logIn makes a connection that of a member, once. A host takes the place of its connection before.
func (f *front) logIn(g *guest, id hub.UserID, m *hub.Member) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case g.member != nil:
		return errors.New("it has logged in before")
	case f.keys[id] >= maxLoginsKey:
		return errors.New("its key has too many connections")
	}
	if m.Host {
		if before := f.hosts[m.Name]; before != nil {
			f.log.Warn("a host has connected again, or two machines have its key", "host", m.Name)
			before.end()
		}
		f.hosts[m.Name] = g
	}
	g.member, g.id = m, id
	f.keys[id]++
	g.place.Leave()
	return nil
}

func (f *front) leave(address netip.AddrPort, g *guest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g.place.Leave()
	delete(f.guests, address)
	if g.member == nil {
		return
	}
	if f.keys[g.id]--; f.keys[g.id] == 0 {
		delete(f.keys, g.id)
	}
	if f.hosts[g.member.Name] == g {
		delete(f.hosts, g.member.Name)
	}
}

// host returns the connection of a host, or nil.
func (f *front) host(name string) *guest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts[name]
}

// expel ends the logins that stays does not let stay.
func (f *front) expel(stays func(id hub.UserID, m *hub.Member) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.guests {
		if g.member != nil && !stays(g.id, g.member) {
			f.log.Info("the list has changed for a login, which ends", "name", g.member.Name)
			g.end()
		}
	}
}

// parsePort returns the address in a URL of NATS.
func parsePort(text string) (netip.AddrPort, error) {
	u, err := url.Parse(text)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.ParseAddrPort(u.Host)
}
