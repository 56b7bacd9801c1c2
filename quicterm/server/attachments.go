//go:build linux || darwin

package server

import (
	"cmp"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/monitor"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The kinds of a client's connection.
const kindQUIC, kindTCP, kindWeb, kindSSH = "quic", "tcp", "web", "ssh"

func kindOf(i incoming) string {
	switch i := i.(type) {
	case quicIncoming:
		return kindQUIC
	case *tcpIncoming:
		if i.web {
			return kindWeb
		}
		return kindTCP
	}
	return kindSSH
}

// attachments know the clients that this daemon relays for. They are safe for concurrent use.
type attachments struct {
	server *Server

	mu        sync.Mutex
	connected map[attachmentID]*attachment
	left      quota.Recent[attachmentID, *attachment] // that have no connection any more, and may come back
	lost      quota.Recent[attachmentID, struct{}]    // that came back to a session that is over
}

type attachmentID struct {
	session  wire.SessionID
	instance wire.InstanceID
}

// An attachment is a client process that is attached to a session. The mutex of attachments guards it.
type attachment struct {
	id      attachmentID
	login   *privsep.Login
	session string // name
	role    wire.Role
	since   time.Time
	address netip.Addr // the last, not valid over ssh
	links   []*link    // the one that began first first
}

// A link is a connection of an attachment.
type link struct {
	conn       *conn
	attachment *attachment
	kind       string
	address    netip.AddrPort
	sent, lost uint64 // packets that were counted
}

// who returns the client of a link as the log has it.
func (l *link) who() string { return l.attachment.login.Account + "@" + l.conn.from() }

// log returns a log whose lines say which client is attached to which session, and what it has shown.
func (l *link) log() *slog.Logger {
	a := l.attachment
	log := l.conn.server.log.With("client", l.who(), "account", a.login.Account, "uid", a.login.UID)
	return a.login.Credential.On(log).With("session", a.session, "id", a.id.session.Short(), "role", a.role.String())
}

// attach adds the first connection of a client that has attached.
func (a *attachments) attach(c *conn, req *wire.Attach, id wire.SessionID, answer wire.Message) *link {
	var attached wire.Attached
	if err := answer.Decode(&attached); err != nil || !wire.ValidName(attached.Name) {
		attached.Name = ""
	}
	one := &attachment{
		id: attachmentID{id, req.Instance}, login: c.login,
		session: attached.Name, role: req.Role, since: time.Now(),
	}
	l, _, _ := a.add(c, one)
	a.server.counts.count("quicterm_attaches_total")
	l.log().Info("client attached", "event", "attach")
	return l
}

// resume adds a further connection of a client.
func (a *attachments) resume(c *conn, req *wire.Resume, by *privsep.Resumed) *link {
	s := a.server
	unknown := &attachment{ // it has attached before this daemon was started
		id: attachmentID{req.ID, req.Instance}, login: &by.Login,
		session: by.Session, since: time.Now(),
	}
	l, connected, before := a.add(c, unknown)
	s.counts.count("quicterm_resumes_total")
	s.counts.Observe("quicterm_reconnect_seconds", by.Away.Seconds())
	moved := before.IsValid() && before != l.address.Addr()
	if moved {
		s.counts.count("quicterm_moves_total")
	}
	if !connected || moved {
		l.log().Info("client continues", "event", "resume")
	}
	return l
}

// add adds a connection to the attachment that has the same id, or is as unknown says if there is
// none. It reports whether the client was connected, and from which address it was last.
func (a *attachments) add(c *conn, unknown *attachment) (l *link, connected bool, before netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, connected := a.connected[unknown.id]
	if !connected {
		one, _ = a.left.Get(unknown.id)
	}
	if one == nil || one.login.UID != unknown.login.UID {
		one = unknown
	}
	before = one.address
	l = &link{conn: c, attachment: one, kind: kindOf(c.incoming), address: c.incoming.RemoteAddr()}
	one.links = append(one.links, l)
	one.address = l.address.Addr()
	a.connected[one.id] = one
	a.server.counts.countOf("quicterm_carriers_total", "kind", l.kind)
	return l, connected, before
}

// remove removes a connection that has ended.
func (a *attachments) remove(l *link) {
	a.look(l, false)
	a.mu.Lock()
	one := l.attachment
	one.links = slices.DeleteFunc(one.links, func(other *link) bool { return other == l })
	last := len(one.links) == 0
	if last {
		delete(a.connected, one.id)
		a.left.Put(one.id, one)
	}
	a.mu.Unlock()
	if !last || a.server.ended.Load() {
		return
	}
	l.log().Info("client detached", "event", "detach", "reason", l.conn.ending.reason())
}

// isLost records that a client came back to a session that is over, and reports whether that is new.
func (a *attachments) isLost(id attachmentID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.lost.Get(id)
	a.lost.Put(id, struct{}{})
	return !known
}

// all returns the connections that are.
func (a *attachments) all() (links []*link) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.connected {
		links = append(links, one.links...)
	}
	return links
}

// count returns how many clients are connected, and how many connections of each kind they have.
func (a *attachments) count() (clients int, byKind map[string]int) {
	byKind = make(map[string]int)
	for _, l := range a.all() {
		byKind[l.kind]++
	}
	return len(a.clients()), byKind
}

// clients returns the clients that are connected, the one that came first first.
func (a *attachments) clients() []*attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.SortedFunc(maps.Values(a.connected), func(x, y *attachment) int {
		return cmp.Or(x.since.Compare(y.since), strings.Compare(string(x.id.instance[:]), string(y.id.instance[:])))
	})
}

// status returns what an operator sees of the clients of each session.
func (a *attachments) status() (sessions []privsep.SessionClients) {
	places := make(map[wire.SessionID]int)
	for _, one := range a.clients() {
		a.mu.Lock()
		links := slices.Clone(one.links)
		a.mu.Unlock()
		if len(links) == 0 {
			continue // it has gone meanwhile
		}
		n, known := places[one.id.session]
		if !known {
			n = len(sessions)
			places[one.id.session] = n
			sessions = append(sessions, privsep.SessionClients{ID: one.id.session})
		}
		sessions[n].Clients = append(sessions[n].Clients, one.status(links[len(links)-1]))
	}
	return sessions
}

// status returns what an operator sees of a client, by its latest connection.
func (a *attachment) status(latest *link) privsep.ClientStatus {
	status := privsep.ClientStatus{
		Client: latest.who(), Credential: a.login.Credential, Role: a.role.String(), Since: a.since.UTC(), Kind: latest.kind,
	}
	if reader, ok := latest.conn.carrier.(carrier.StatsReader); ok {
		status.RTT = monitor.Milliseconds(reader.Stats().RTT)
	}
	return status
}
