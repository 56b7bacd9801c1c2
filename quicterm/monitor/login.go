//go:build linux || darwin

package monitor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxLogins bounds the logins that are kept, of clients that are connected: some hundred bytes each.
const maxLogins = 1 << 16

// A proven is a login that was proven, or that of a client that resumes, as its holder says.
type proven struct {
	access.Admission
	account    *account.Account // nil of a client that resumes: it may only be checked
	allowed    auth.Permissions
	at         time.Time
	credential privsep.Credential

	// Guarded by logins.mu:
	path     privsep.Path // where it was good
	due      time.Time    // when it should have been checked again
	attached bool         // it has asked for a session
	enrolled bool         // it has enrolled a device, or is about to
	leashes  []func()     // each ends a connection to its holder

	listing      sync.Mutex // guards the following
	lostSessions []entry    // as listed last
	listedLost   time.Time  // when that was, or zero
}

// logins are those of the clients that are connected. They are safe for concurrent use. The zero value is empty.
type logins struct {
	mu   sync.Mutex
	byID map[privsep.LoginID]*proven
}

// add keeps a login that is used on a path, and returns its id.
func (l *logins) add(p *proven, path privsep.Path) (id privsep.LoginID, err error) {
	rand.Read(id[:])
	p.path, p.due = path, time.Now().Add(privsep.RightTime+overdueTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byID) >= maxLogins {
		return id, errors.New("too many clients are logged in")
	}
	if l.byID == nil {
		l.byID = make(map[privsep.LoginID]*proven)
	}
	l.byID[id] = p
	return id, nil
}

// errNoLogin is the error of a request by a login that is not known, or that may not make it.
var errNoLogin = errors.New("there is no such login, or it is too old for that")

func (l *logins) get(id privsep.LoginID) (*proven, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.byID[id]; p != nil {
		return p, nil
	}
	return nil, errNoLogin
}

// removeLocked forgets a login, and ends its connection to a holder.
func (l *logins) removeLocked(id privsep.LoginID) {
	if p := l.byID[id]; p != nil {
		for _, cut := range p.leashes {
			cut()
		}
		delete(l.byID, id)
	}
}

// removeKeys removes the logins of an account by enrolled keys that were removed.
func (l *logins) removeKeys(uid uint32, keys []wire.EnrolledKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.byID {
		sum := sha256.Sum256([]byte(p.Key))
		if p.UID == uid && slices.ContainsFunc(keys, func(k wire.EnrolledKey) bool { return bytes.Equal(k.Sum, sum[:]) }) {
			l.removeLocked(id)
		}
	}
}

// Clear removes all logins.
func (l *logins) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.byID {
		l.removeLocked(id)
	}
}

// Leave forgets the login of a client whose connection has ended, as that to its holder does then.
func (s *Monitor) Leave(id privsep.LoginID) {
	s.logins.mu.Lock()
	defer s.logins.mu.Unlock()
	s.logins.removeLocked(id)
}

// prove logs a client in, by a key unless that is nil, and returns what the network half knows of the login.
func (s *Monitor) prove(
	a *account.Account, allowed *auth.Permissions, key ssh.PublicKey, blob []byte,
	credential privsep.Credential, path privsep.Path,
) (*privsep.Login, error) {
	return s.login(&proven{
		Admission: access.Admission{
			UID: a.UID, Account: a.Name, Key: string(blob), Scope: allowed.Scope(key), NoPTY: allowed.NoPTY,
		},
		account: a, allowed: *allowed, at: time.Now(), credential: credential,
	}, path)
}

// login keeps a login that is used on a path.
func (s *Monitor) login(p *proven, path privsep.Path) (*privsep.Login, error) {
	id, err := s.logins.add(p, path)
	if err != nil {
		return nil, err
	}
	return &privsep.Login{
		ID: id, Account: wire.Printable(p.Account, wire.MaxSummary), UID: p.UID, Credential: p.credential,
	}, nil
}

// Offer finds out which keys an account accepts. The error says why it accepts none, whichever they
// are. That there is no such account is no error: nothing tells it from one that accepts none of the keys.
func (s *Monitor) Offer(ctx context.Context, o *privsep.Offer) (*privsep.Verdicts, error) {
	ctx = account.WithSource(ctx, o.Source)
	a, unknown := s.accountOf(ctx, o)
	verdicts, err := s.access.Judge(ctx, a, o)
	if err != nil {
		return nil, err
	}
	answer := &privsep.Verdicts{
		Time: s.signatures.Offer(time.Now(), time.Duration(uptime())), Sealed: s.access.Seal(o, verdicts),
	}
	for _, v := range verdicts {
		text := ""
		if err := cmp.Or(unknown, v.Refused); err != nil {
			text = err.Error()
		}
		answer.Refused = append(answer.Refused, text)
	}
	return answer, nil
}

// Prove checks a signature by a key of an Offer, and logs the client in if it is good.
func (s *Monitor) Prove(ctx context.Context, p *privsep.Proof) (*privsep.Login, error) {
	if p.Key < 0 || p.Key >= len(p.Offer.Keys) || len(p.Exporter) != auth.ExporterSize {
		return nil, errors.New("proof of a key that was not offered, or over nothing")
	}
	if !slices.ContainsFunc(s.hostKeys, func(k *auth.HostKey) bool { return string(p.Host) == string(k.ID[:]) }) {
		return nil, errors.New("the signature is for another host key than this machine's")
	}
	ctx = account.WithSource(ctx, p.Offer.Source)
	a, unknown := s.accountOf(ctx, &p.Offer)
	blob := p.Offer.Keys[p.Key]
	key, err := auth.ParseUserKey(blob)
	if err != nil {
		return nil, err
	}
	allowed, err := s.access.Allowed(ctx, a, &p.Offer, p.Key)
	if err := cmp.Or(unknown, err); err != nil {
		return nil, err
	}
	// All of it is known here except the time and the exporter: the network half could say that
	// another account, or another server, was meant.
	statement := &auth.Statement{Host: auth.HostID(p.Host), Account: a.Name, Time: p.Time, Exporter: p.Exporter}
	if err := statement.Verify(key, p.Signature, allowed.Verified); err != nil {
		return nil, err
	}
	if err := s.signatures.Accept(a.UID, statement, time.Now(), time.Duration(uptime())); err != nil {
		return nil, fmt.Errorf("account %s: %w", a.Name, err)
	}
	login, err := s.prove(a, allowed, key, blob, privsep.KeyCredential(blob), p.Offer.Path)
	if err == nil && allowed.Enrolled != nil { // who revokes it from here on removes the login
		if err = s.useKey(ctx, a, allowed.Enrolled); err != nil {
			s.Leave(login.ID)
			err = fmt.Errorf("account %s: %w", a.Name, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return login, nil
}

// Redeem accepts a token as proof.
func (s *Monitor) Redeem(ctx context.Context, t *privsep.Token) (*privsep.Login, error) {
	grantee, err := s.tokens.Redeem(time.Now(), t.Token)
	if err != nil {
		return nil, err
	}
	a, err := s.names.LookupID(ctx, grantee.UID)
	if err != nil {
		return nil, fmt.Errorf("token of user id %d: %w", grantee.UID, err)
	}
	if err := access.CheckExpired(a); err != nil {
		return nil, err
	}
	allowed, err := s.access.TokenPermissions(ctx, a, t.Path.From(), t.Path.At())
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", a.Name, err)
	}
	credential := privsep.Credential{Proof: privsep.ProofToken, Reported: grantee.Reported}
	return s.prove(a, allowed, nil, nil, credential, t.Path)
}

// admitLocal returns the client that an account's process asks a carrier for, or why it gets none.
func (s *Monitor) admitLocal(ctx context.Context, a *account.Account, ask *wire.Ask) (*privsep.Local, error) {
	if err := access.CheckExpired(a); err != nil {
		return nil, err
	}
	l := new(privsep.Local)
	client, err := netip.ParseAddrPort(ask.Client)
	server, err2 := netip.ParseAddrPort(ask.Server)
	if errors.Join(err, err2) == nil {
		l.Path = privsep.Path{Client: privsep.WithoutZone(client), Server: privsep.WithoutZone(server)}
	}
	allowed, err := s.access.TokenPermissions(ctx, a, l.Path.From(), l.Path.At())
	if err != nil {
		return nil, err
	}
	credential := privsep.Credential{Proof: privsep.ProofSSH, Reported: ask.Reported}
	login, err := s.prove(a, allowed, nil, nil, credential, l.Path)
	if err != nil {
		return nil, err
	}
	l.Login = *login
	return l, nil
}

// AdmitLocal returns the client of an account that needs no login. A server that serves no unix
// socket, such as one in memory, has its local clients so.
func (s *Monitor) AdmitLocal(ctx context.Context, uid uint32) (*privsep.Local, error) {
	a, err := s.names.LookupID(ctx, uid)
	if err != nil {
		return nil, err
	}
	return s.admitLocal(ctx, a, &wire.Ask{})
}

// accountOf returns the account of an Offer. It fails if the daemon does not serve it.
func (s *Monitor) accountOf(ctx context.Context, o *privsep.Offer) (*account.Account, error) {
	a, err := s.names.Lookup(ctx, o.User)
	if err != nil {
		return nil, fmt.Errorf("account %.64q: %w", o.User, err)
	}
	if !s.serves(a.UID) {
		return nil, fmt.Errorf("account %s: this daemon serves %s only", a.Name, s.self.Name)
	}
	if err := access.CheckExpired(a); err != nil {
		return nil, err
	}
	return a, nil
}

// A client is a login with which something is asked now.
type client struct {
	*proven
	server   *Monitor
	path     privsep.Path
	instance wire.InstanceID // of an Attach
	log      *slog.Logger
}

// client returns the client of a login for a request that only reads. A guest may make none.
func (s *Monitor) client(by *privsep.By) (*client, error) {
	c, err := s.clientOrGuest(by)
	if err == nil && c.allowed.Guest() {
		return nil, errGuest
	}
	return c, err
}

func (s *Monitor) clientOrGuest(by *privsep.By) (*client, error) {
	p, err := s.logins.get(by.Login)
	if err != nil {
		return nil, err
	}
	if p.account == nil {
		return nil, errNoLogin
	}
	c := &client{proven: p, server: s, path: by.Path}
	c.log = p.on(s.log, &by.Path)
	return c, nil
}

// on returns a log whose lines say who has logged in, from where, and how.
func (p *proven) on(log *slog.Logger, path *privsep.Path) *slog.Logger {
	name := wire.Printable(p.Account, wire.MaxSummary)
	return p.credential.On(log.With("client", name+"@"+path.String(), "account", name, "uid", p.UID))
}

// changing is client for a request that changes something, which a login may send for a while.
func (s *Monitor) changing(by *privsep.By) (*client, error) {
	c, err := s.client(by)
	if err == nil {
		err = c.mayChange()
	}
	return c, err
}

func (c *client) mayChange() error {
	if time.Since(c.at) > wire.RequestsTime+requestsSlack {
		return errNoLogin
	}
	return nil
}

// open returns the message that tells a holder on whose behalf it is asked.
func (c *client) open() *wire.Open {
	name := c.account.Name
	if c.allowed.Guest() {
		name = "guest " + c.allowed.Enrolled.Name
	}
	if c.path.Client.IsValid() {
		name += "@" + c.path.Client.Addr().String()
	} else {
		name += "@ssh"
	}
	rules := c.allowed.Forwards()
	open := &wire.Open{
		Client:   name,
		Scope:    c.Scope,
		NoPTY:    c.NoPTY,
		Instance: c.instance,
		Account:  c.account.Name,
		Key:      []byte(c.Key),
		Forwards: !c.allowed.Guest() && !rules.NoDial && len(rules.Dials) == 0,
	}
	switch {
	case c.Key == "":
		open.Proof, open.Reported = c.credential.Proof, c.credential.Reported
	case auth.Certified([]byte(c.Key)):
		open.Proven = c.at.Unix()
	}
	if e := c.allowed.Enrolled; c.allowed.Guest() {
		open.Guest = &wire.Guest{Types: e.Types, Until: e.Expires}
	}
	return open
}

// right returns the right by which the login is used on a path.
func (p *proven) right(path *privsep.Path) access.Right {
	r := access.Right{Admission: p.Admission, From: path.From(), At: path.At()}
	if auth.Certified([]byte(r.Key)) {
		r.Proven = p.at
	}
	return r
}
