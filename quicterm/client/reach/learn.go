package reach

import (
	"errors"
	"net/netip"
	"syscall"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
)

// learn remembers what a login tells of the way to the server, also for a command that ends before a session moves. It
// runs before anything else of the command. direct says why no login without ssh has succeeded before it, if one has
// failed.
func (a *Access) learn(by client.Transport, server netip.AddrPort, direct error) {
	now := reached{Server: a.Target.server(), Port: server.Port(), NoUDP: by == client.TCP}
	if by == client.SSH {
		if a.before.NoLogin {
			return // for a day from when it was found out
		}
		now.Port = a.Tunnel.Port()
		// A daemon that did not run, had another port, or found another daemon at its own, is dialed the next time.
		another := errors.As(direct, new(*auth.UnknownHostError))
		if a.before.Port == now.Port && !errors.Is(direct, syscall.ECONNREFUSED) && !another {
			now.NoUDP, now.NoLogin = a.before.NoUDP, true
		}
	}
	var known bool
	if now.Key, known = a.daemonKey(); now.Port == 0 || !known {
		return
	}
	if err := remember(now); err != nil {
		a.Log.Debug("how the server was reached is not remembered", "error", err)
	}
}

// daemonKey returns the fingerprint of the daemon's host key if only ssh has brought it, and whether the daemon can be
// reached without ssh next time: whether its key is known then.
func (a *Access) daemonKey() (fingerprint string, known bool) {
	if a.Tunnel == nil || a.Tunnel.Port() == 0 {
		return a.before.Key, true
	}
	t, key := *a.Target, a.Tunnel.Key()
	t.DaemonPort = a.Tunnel.Port()
	hosts, err := t.LoadKnownHosts()
	if err == nil {
		err = hosts.Check(key)
	}
	if _, candidate := acceptable(err); candidate == nil {
		return "", err == nil
	}
	return ssh.FingerprintSHA256(key), true
}
