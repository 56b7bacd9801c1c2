package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/client/sshlogin"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

// An ownLogin logs in to hosts by ssh connections of our own, where there is no ssh program.
type ownLogin struct {
	hops []*hop // the last one is the host that is logged in to
	log  *slog.Logger
}

// A hop is a host on the way, as ssh knows it.
type hop struct {
	target
	accepted ssh.PublicKey // by the user, maybe in no file
}

// maxHops bounds how many hosts a way leads through, as jump hosts may have jump hosts.
const maxHops = 10

// ownLoginTo returns the login to a target, through the hosts of ProxyJump, or nil if there is
// an ssh program.
func ownLoginTo(ctx context.Context, t *target, log *slog.Logger) bootstrap.OwnLogin {
	if _, err := exec.LookPath("ssh"); err == nil {
		return nil
	}
	hops, err := jumps(ctx, t.config, t.sshFile, maxHops)
	if err != nil {
		return func(context.Context, bool, string, io.Writer) (io.ReadWriteCloser, error) {
			return nil, fmt.Errorf("%w: %w", bootstrap.ErrNoSSH, err)
		}
	}
	last := newHop(t.config)
	last.identities, last.knownHosts, last.globalHosts = t.identities, t.knownHosts, t.globalHosts
	return (&ownLogin{append(hops, last), log}).run
}

// jumps returns the hosts on the way to another one. As with ssh, the first one may have jump
// hosts of its own, and a host is not its own jump host.
func jumps(ctx context.Context, to *sshconfig.Host, file string, most int) (hops []*hop, err error) {
	if to.Connection.ProxyCommand != "" {
		return nil, fmt.Errorf("ssh's configuration for %s has a ProxyCommand, which needs the ssh program", to.Name)
	}
	through := to.Connection.Jumps
	if len(through) == 1 && strings.EqualFold(through[0].Host, to.Name) {
		through = nil
	}
	if most -= len(through); most <= 0 {
		return nil, errors.New("ssh's configuration has too many jump hosts")
	}
	for i, j := range through {
		h, err := sshconfig.Load(ctx, sshconfig.Query{Host: j.Host, User: j.User, File: file})
		if err != nil {
			return nil, err
		}
		if j.Port != 0 {
			h.Port = j.Port
		}
		if i == 0 {
			if hops, err = jumps(ctx, h, file, most); err != nil {
				return nil, err
			}
		}
		hops = append(hops, newHop(h))
	}
	return hops, nil
}

func newHop(h *sshconfig.Host) *hop {
	p := new(hop)
	p.name = h.Name
	p.apply(h)
	if p.port = h.Port; h.Alias != h.Hostname {
		p.port = 22 // known_hosts has an alias without a port
	}
	return p
}

// run is a [bootstrap.OwnLogin].
func (o *ownLogin) run(ctx context.Context, ask bool, command string, errs io.Writer) (io.ReadWriteCloser, error) {
	for {
		failed, stream, err := o.try(ctx, ask, command, errs)
		if err == nil {
			return stream, nil
		}
		if failed == nil || failed.accepted != nil || !ask && failed.unknownHosts == sshconfig.Ask {
			return nil, o.explain(err)
		}
		host, key := acceptable(err)
		if refusal := decideHost(&failed.target, err); refusal != nil || key == nil {
			return nil, refusal
		}
		failed.accepted = key
		keepHost(&failed.target, host, key)
	}
}

// try logs in once. If it fails because of the key of a host, it returns that host.
func (o *ownLogin) try(ctx context.Context, ask bool, command string, errs io.Writer) (failed *hop, s io.ReadWriteCloser, err error) {
	var login *sshlogin.Login
	for _, p := range o.hops {
		next, closeKeys, err := o.login(p, ask, &failed)
		if err != nil {
			return nil, nil, err
		}
		defer closeKeys()
		next.Jump = login
		login = next
	}
	login.Errors = errs
	s, err = login.Run(ctx, command)
	return failed, s, err
}

// login returns the login to a host. If the host's key is not accepted, it sets failed.
func (o *ownLogin) login(p *hop, ask bool, failed **hop) (*sshlogin.Login, func(), error) {
	known, err := p.loadKnownHosts()
	if err != nil {
		return nil, nil, err
	}
	keys, closeKeys := sshKeys(p, o.log)
	c, all := p.config.Connection, ssh.SupportedAlgorithms()
	l := &sshlogin.Login{
		Host:    p.name,
		Address: net.JoinHostPort(p.host, strconv.Itoa(int(p.config.Port))),
		Network: "tcp" + strings.TrimPrefix(p.network, "ip"),
		User:    p.user,
		Dial:    (&net.Dialer{Resolver: newResolver()}).DialContext,
		CheckHost: func(key ssh.PublicKey) error {
			err := p.check(known, key)
			if err != nil {
				*failed = p
			}
			return err
		},
		Algorithms: sshlogin.Algorithms{
			HostKeys:     known.Algorithms(),
			Ciphers:      sshconfig.Algorithms(c.Ciphers, all.Ciphers),
			KeyExchanges: sshconfig.Algorithms(c.KeyExchanges, all.KeyExchanges),
			MACs:         sshconfig.Algorithms(c.MACs, all.MACs),
			UserKeys:     p.config.UserKeyAlgorithms,
		},
		Keys:    keys,
		Methods: c.Methods,
		Prompts: c.Prompts,
		Timeout: c.Timeout,
	}
	if ask && !p.batch {
		l.Asker = asker{}
	}
	return l, closeKeys, nil
}

// check returns why the key of a host is not accepted, or nil. As to ssh, a key that is known for
// the host at another port makes another one unknown, not wrong.
func (p *hop) check(known *auth.KnownHosts, key ssh.PublicKey) error {
	err := known.Check(key)
	var changed *auth.ChangedHostError
	if errors.As(err, &changed) && changed.OfSSH {
		err = &auth.UnknownHostError{Host: changed.Host, Key: changed.Key}
	}
	_, candidate := acceptable(err)
	if candidate != nil && p.accepted != nil && bytes.Equal(candidate.Marshal(), p.accepted.Marshal()) {
		return nil
	}
	return err
}

// explain returns an error in the words of ssh, if the login failed as it may with ssh.
func (o *ownLogin) explain(err error) error {
	p := o.hops[len(o.hops)-1]
	failed := func(format string, args ...any) error {
		return &bootstrap.LoginError{Host: p.name, Reason: fmt.Sprintf(format, args...)}
	}
	var denied *sshlogin.DeniedError
	var network *net.OpError
	var unresolved *net.DNSError
	var unknown *auth.UnknownHostError
	switch {
	case errors.As(err, new(*signalError)):
		return err
	case errors.As(err, &denied):
		reason := fmt.Sprintf("%s: Permission denied (%s)", denied.User, denied.Methods)
		if denied.Failed != nil {
			reason += ": " + denied.Failed.Error()
		}
		return failed("%s", reason)
	case errors.As(err, &unknown):
		return failed("Host key verification failed: %v", unknown)
	case errors.As(err, &unresolved):
		return failed("Could not resolve hostname %s: %s", unresolved.Name, unresolved.Err)
	case errors.As(err, &network) && network.Op == "dial":
		first := o.hops[0] // all others are dialed by hosts on the way
		return failed("connect to host %s port %d: %v", first.host, first.config.Port, network.Err)
	}
	return failed("%s", strings.TrimPrefix(err.Error(), "ssh to "+p.name+": "))
}

// sshKeys returns the keys and certificates to offer to an sshd, and a function that ends the use
// of them.
func sshKeys(p *hop, log *slog.Logger) ([]*auth.UserKey, func()) {
	agentKeys, closeAgent := agentKeys(&p.target, log)
	keys, _ := identityKeys(&p.target, agentKeys, log)
	return permitted(&p.target, withCertificates(&p.target, keys, agentKeys, log), log), closeAgent
}

// An asker asks the user on the terminal.
type asker struct{}

func (asker) Ask(prompt string, echo bool) (string, error) {
	tty, err := terminal.OpenTTY()
	if err != nil {
		return "", errNoTTYForPassword
	}
	defer tty.Close()
	read := tty.ReadSecret
	if echo {
		read = tty.ReadLine
	}
	answer, err := read(prompt)
	return answer, unanswered(err, errNoPassword)
}

func (asker) Tell(line string) { sayForSSH(line) }
