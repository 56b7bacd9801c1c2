// Package examine measures what qt doctor tells of a host; package doctor judges it.
package examine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An examination looks at a host.
type examination struct {
	host string
	opts *reach.Options

	target *reach.Target
	facts  doctor.Host

	mu     sync.Mutex
	key    ssh.PublicKey // that the daemon has shown last
	keyErr error
}

// Host logs in to a host as every other command does, and tries all ways to its daemon. It sets opts.Inspect.
func Host(ctx context.Context, host string, opts *reach.Options) doctor.Report {
	return (&examination{host: host, opts: opts}).run(ctx)
}

// reachTime bounds how long a candidate has to answer: some lost packets on a slow path.
const reachTime = 4 * time.Second

// run logs in as every other command does, and tries all candidates as soon as the port is known.
func (x *examination) run(ctx context.Context) doctor.Report {
	x.opts.Inspect = func(key ssh.PublicKey, err error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.key, x.keyErr = key, err
	}
	x.facts.Name = x.host
	err := reach.With(ctx, x.host, x.opts, func(ctx context.Context, a *reach.Access) error {
		x.target = a.Target
		x.facts = doctor.Host{Name: a.Target.Name, Local: a.Target.Local, Client: reach.Software()}
		return x.look(ctx, a)
	})
	x.facts.Client = reach.Software()
	if err != nil {
		x.facts.Login.Of = checkOf(err)
		x.facts.Login.Err, x.facts.Login.Todo = split(err)
		if x.facts.Login.Of == "name" {
			x.facts.NameErr = errors.New(x.facts.Login.Err)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.key != nil {
		x.facts.Key.Key = x.key.Type() + " " + ssh.FingerprintSHA256(x.key)
		err := x.keyErr
		if err == nil {
			err = x.otherKeyKnown()
		}
		if err != nil {
			x.facts.Key.Err, x.facts.Key.Todo = split(reach.Explain(err, x.target))
		}
	}
	return x.facts.Report()
}

// otherKeyKnown returns an error if known_hosts has another key of the daemon than it has shown. A login by ssh, which
// has brought the key, does not look there.
func (x *examination) otherKeyKnown() error {
	t := *x.target
	if t.Local {
		return nil
	}
	t.DaemonPort = x.facts.Port
	known, err := t.LoadKnownHosts()
	if err != nil {
		return err
	}
	var changed *auth.ChangedHostError
	if err := known.Check(x.key); errors.As(err, &changed) && !changed.OfSSH {
		return changed
	}
	return nil
}

// look collects what there is to know with one access to the server. It returns why the login
// failed, so that another access may be tried.
func (x *examination) look(ctx context.Context, a *reach.Access) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	if a.Tunnel == nil { // no login has to tell the port first
		wg.Go(func() { x.reach(ctx, a) })
	}
	description, by, err := a.Client.Describe(ctx)
	if err == nil {
		x.describe(a, &description)
		x.facts.Login.By = map[client.Transport]string{client.QUIC: "UDP", client.TCP: "TCP", client.SSH: "ssh"}[by]
	}
	x.facts.Port = a.Target.DaemonPort
	if a.Tunnel != nil {
		x.facts.Jumped = a.Tunnel.Pipe
		if port := a.Tunnel.Port(); port != 0 || !a.WasReached() {
			x.facts.Port = port
		}
	}
	if x.facts.Port == 0 { // only a login by ssh tells it
		x.candidates(ctx, a)
		return err
	}
	if a.Tunnel != nil {
		x.reach(ctx, a)
	}
	wg.Wait()
	if w := x.facts.Web; w != nil && w.Err == nil && by == client.TCP && err == nil {
		x.facts.Login.By = "HTTPS"
	}
	return err
}

func (x *examination) describe(a *reach.Access, d *wire.Description) {
	x.facts.Server = &doctor.Server{
		Software: d.Software, Proof: d.Proof, Granted: d.Granted, Account: a.Target.User,
		Ahead: time.Until(time.UnixMilli(d.Time)),
	}
	switch d.Logout {
	case wire.LogoutKeeps:
		x.facts.Server.Logout = doctor.LogoutKeeps
	case wire.LogoutEnds:
		x.facts.Server.Logout = doctor.LogoutEnds
	}
	x.facts.Limits = doctor.Limits{
		Sessions: d.Sessions, MaxSessions: d.MaxSessions, Memory: d.Memory, MaxMemory: d.MaxMemory,
	}
	x.facts.NAT.Client = d.Client
}

// candidates returns how the server may be reached, and records what its name stands for.
func (x *examination) candidates(ctx context.Context, a *reach.Access) []client.Candidate {
	candidates, err := a.Client.Candidates(ctx)
	var unresolved *net.DNSError
	if errors.As(err, &unresolved) {
		err = reach.NameError{Err: unresolved}
	}
	x.facts.NameErr = err
	for _, candidate := range candidates {
		if !slices.Contains(x.facts.Addresses, candidate.Remote) {
			x.facts.Addresses = append(x.facts.Addresses, candidate.Remote)
		}
	}
	return candidates
}

// reach tries all candidates at once.
func (x *examination) reach(ctx context.Context, a *reach.Access) {
	candidates := x.candidates(ctx, a)
	if x.facts.NameErr != nil {
		return
	}
	tried := make([]doctor.Candidate, len(candidates))
	var wg sync.WaitGroup
	for i, candidate := range candidates {
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, reachTime, errNoAnswer)
			defer cancel()
			rtt, err := a.Client.Reach(ctx, candidate)
			if !errors.As(err, new(*client.UnreachableError)) {
				err = nil // an error about a key shows that the candidate works
			} else if ctx.Err() != nil {
				err = errNoAnswer
			}
			tried[i] = doctor.Candidate{
				UDP: candidate.Transport == client.QUIC, Interface: candidate.Interface,
				Remote: candidate.Remote, RTT: rtt, Err: unwrapped(err),
			}
		})
	}
	wg.Wait()
	x.facts.Candidates = tried
	x.reachWeb(ctx, a, candidates)
	for _, candidate := range candidates {
		if !candidate.Bound { // as the connection of the login
			x.facts.NAT.Local = candidate.Source
		}
	}
	x.knock(ctx, a, candidates)
}

// reachWeb tries HTTPS, by which sessions run in networks in which no candidate by TCP works.
func (x *examination) reachWeb(ctx context.Context, a *reach.Access, candidates []client.Candidate) {
	var byTCP []client.Candidate
	for i, candidate := range candidates {
		if candidate.Transport == client.TCP {
			if x.facts.Candidates[i].Err == nil {
				return
			}
			byTCP = append(byTCP, candidate)
		}
	}
	for _, candidate := range byTCP {
		ctx, cancel := context.WithTimeoutCause(ctx, reachTime, errNoAnswer)
		rtt, err := a.Client.ReachWeb(ctx, candidate)
		if ctx.Err() != nil {
			err = errNoAnswer
		}
		cancel()
		x.facts.Web = &doctor.Candidate{
			Interface: candidate.Interface, Remote: netip.AddrPortFrom(candidate.Remote.Addr(), client.WebPort),
			RTT: rtt, Err: unwrapped(err),
		}
		if err == nil {
			return
		}
	}
}

var errNoAnswer = errors.New("nothing comes back")

// unwrapped returns an error of reaching an address without the words that say so again.
func unwrapped(err error) error {
	var unreachable *client.UnreachableError
	var op *net.OpError
	switch {
	case errors.As(err, &op):
		return op.Err
	case errors.As(err, &unreachable):
		return unreachable.Err
	}
	return err
}

// knock finds out whether it is the size of the packets that keeps UDP from working.
func (x *examination) knock(ctx context.Context, a *reach.Access, candidates []client.Candidate) {
	for i, candidate := range candidates {
		if candidate.Transport == client.QUIC && x.facts.Candidates[i].Err == nil {
			return
		}
	}
	for _, candidate := range candidates {
		if candidate.Transport != client.QUIC {
			continue
		}
		k := new(doctor.Knock)
		k.Small, _ = a.Client.Knock(ctx, candidate, smallPacket)
		if k.Small {
			k.Large, _ = a.Client.Knock(ctx, candidate, largePacket)
		}
		if i, err := net.InterfaceByName(candidate.Interface); err == nil {
			k.MTU = i.MTU
		}
		if x.facts.Knock == nil || k.Small {
			x.facts.Knock = k
		}
		if k.Small {
			return
		}
	}
}

// smallPacket is the size of UDP payloads that pass wherever UDP does, and largePacket of those that
// QUIC needs (RFC 9000, 14), in bytes.
const smallPacket, largePacket = 100, 1200

// checkOf returns the check whose line has an error of a login.
func checkOf(err error) string {
	var unresolved *net.DNSError
	switch {
	case errors.As(err, new(*auth.ChangedHostError)), errors.As(err, new(*auth.UnknownHostError)),
		errors.As(err, new(*auth.RevokedHostError)), errors.As(err, new(*auth.RefusedHostError)):
		return "hostkey"
	case errors.As(err, new(*bootstrap.MissingError)), errors.As(err, new(*bootstrap.VersionError)):
		return "version"
	case errors.Is(err, client.ErrBusy):
		return "limits"
	case errors.As(err, &unresolved):
		return "name"
	case errors.As(err, new(*client.UnreachableError)):
		return "udp"
	}
	return "auth"
}

// split returns an error and its hint in one line each.
func split(err error) (what, todo string) {
	var hint *reach.HintError
	if errors.As(err, &hint) {
		err, todo = hint.Err, hint.Hint
	}
	return strings.Join(strings.Fields(err.Error()), " "), todo
}
