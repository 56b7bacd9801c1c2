package reach

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Target is a server, and our account and keys there.
type Target struct {
	*sshconfig.Host // of this machine and account, it has names alone

	typed      string // [user@]name
	DaemonPort uint16
	Local      bool     // this machine and account: a grant gives access
	sshArgs    []string // by which the ssh program reaches it
	unattended bool     // as in Options
}

// LoadKnownHosts returns the keys that are known for the target.
func (t *Target) LoadKnownHosts() (*auth.KnownHosts, error) {
	known, err := auth.LoadKnownHosts(t.Alias, t.DaemonPort, slices.Concat(t.KnownHosts, t.GlobalKnownHosts))
	if err != nil {
		return nil, err
	}
	return known, known.Restrict(auth.HostRules{
		KeyRules:     auth.KeyRules{Algorithms: t.HostKeyAlgorithms, MinRSA: t.MinRSA},
		CAAlgorithms: t.CAAlgorithms,
		RevokedKeys:  t.RevokedHostKeys,
	})
}

// IsKnown reports whether the known_hosts files have a key of the server, at the port of its daemon or of its sshd.
func (t *Target) IsKnown() bool {
	for _, port := range []uint16{t.DaemonPort, t.Port} {
		known, err := auth.LoadKnownHosts(t.Alias, port, slices.Concat(t.KnownHosts, t.GlobalKnownHosts))
		if err == nil && known.Any() {
			return true
		}
	}
	return false
}

// Options are what a command line says about how to reach a server. Empty means as the settings and ssh's
// configuration say.
type Options struct {
	User       string
	Port       uint16
	Identities []string
	Config     string // of ssh
	Verbose    bool
	Redundant  bool
	Bootstrap  string

	// Unattended says that no user is there: what would ask, or wait for the touch of a key, fails. A server whose key is
	// not known is refused.
	Unattended bool

	// Inspect is told of the daemon's keys, and why they are not accepted. The user can then
	// accept none. It may be nil.
	Inspect func(key ssh.PublicKey, err error)
}

// log returns where to log to.
func (o *Options) log() *slog.Logger {
	if o.Verbose {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// ThisMachine is the argument that names this machine. Commands whose host may be left out are for it then.
const ThisMachine = "."

// ParseTarget splits [user@]host.
func ParseTarget(s string, opts *Options) (user, host string, err error) {
	host = s
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		user, host = s[:i], s[i+1:]
	}
	if opts.User != "" {
		user = opts.User
	}
	if host == ThisMachine {
		host = "localhost"
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	// A ProxyCommand or a Match exec of ssh's configuration may give both to a shell. ssh refuses
	// these characters since version 9.6.
	const ofShells = "'`\";&<>|(){}"
	if strings.HasPrefix(user, "-") || strings.ContainsAny(user, ofShells) || user != wire.Printable(user, len(user)) {
		return "", "", fmt.Errorf("%q is not the name of an account", user)
	}
	if host == "" || strings.HasPrefix(host, "-") || strings.ContainsAny(host, ` /$\`+ofShells) ||
		host != wire.Printable(host, len(host)) {
		return "", "", fmt.Errorf("%q is not a host", s)
	}
	if name, port, ok := strings.Cut(host, ":"); ok {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && net.ParseIP(host) == nil {
			return "", "", fmt.Errorf("%q is not a host: if port %d of %s is the daemon's, give it by -p", s, n, name)
		}
	}
	return user, host, nil
}

// findTarget returns a target as the flags, the settings and ssh's configuration describe
// it.
func findTarget(ctx context.Context, arg string, opts *Options, defaultPort uint16) (*Target, error) {
	login, host, err := ParseTarget(arg, opts)
	if err != nil {
		return nil, err
	}
	t := &Target{typed: arg, DaemonPort: cmp.Or(opts.Port, defaultPort), unattended: opts.Unattended}
	if t.Local, err = IsLocal(arg, opts); err != nil {
		return nil, err
	}
	if t.Local {
		me, err := user.Current()
		if err != nil {
			return nil, err
		}
		t.Host = &sshconfig.Host{Name: host, Hostname: host, User: me.Username}
		return t, nil
	}
	for _, file := range opts.Identities {
		if _, err := os.Stat(file); err != nil {
			if _, pubErr := os.Stat(file + ".pub"); pubErr != nil {
				return nil, fmt.Errorf("identity: %w", err)
			}
		}
	}
	if t.Host, err = LoadSSH(ctx, arg, opts); err != nil {
		return nil, err
	}
	t.sshArgs = t.Undo
	if t.unattended {
		t.Unknown, t.Batch = sshconfig.Refuse, true
		t.sshArgs = append(t.sshArgs, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
		t.UserKeyAlgorithms = slices.DeleteFunc(t.UserKeyAlgorithms, needsTouch)
		if len(t.UserKeyAlgorithms) > 0 { // an older ssh does not tell them
			t.sshArgs = append(t.sshArgs, "-o", "PubkeyAcceptedAlgorithms="+strings.Join(t.UserKeyAlgorithms, ","))
		}
	}
	t.sshArgs = append(t.sshArgs, SSHArgs(login, host, opts)...)
	return t, nil
}

// needsTouch reports whether a key of a type is in a device that asks for a touch.
func needsTouch(keyType string) bool { return strings.HasPrefix(keyType, "sk-") }

// SSHArgs returns the arguments by which ssh reaches a host as these options say.
func SSHArgs(login, host string, opts *Options) []string {
	var args []string
	if opts.Config != "" {
		args = append(args, "-F", opts.Config)
	}
	if login != "" {
		args = append(args, "-l", login)
	}
	for _, file := range opts.Identities {
		args = append(args, "-i", file)
	}
	return append(args, "--", host)
}

// server names the target and our account there. Behind one address, each port of sshd may be
// another machine.
func (t *Target) server() string {
	return t.User + "@" + net.JoinHostPort(t.Hostname, strconv.Itoa(int(t.Port)))
}

// IsLocal reports whether an argument names this machine and account, where a grant gives access.
func IsLocal(arg string, opts *Options) (bool, error) {
	login, host, err := ParseTarget(arg, opts)
	if err != nil {
		return false, err
	}
	me, err := user.Current()
	if err != nil {
		return false, err
	}
	return isLoopback(host) && opts.Port == 0 && (login == "" || login == me.Username) && len(opts.Identities) == 0, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// resolve returns the addresses of the target, with the IP families in turn (RFC 8305,
// 4).
func (t *Target) resolve(ctx context.Context) ([]netip.AddrPort, error) {
	ips, err := newResolver().LookupNetIP(ctx, t.Network, t.Hostname)
	if err != nil {
		return nil, err
	}
	var same, other []netip.AddrPort
	for _, ip := range ips {
		addr := netip.AddrPortFrom(ip.Unmap(), t.DaemonPort)
		if ip.Unmap().Is4() == ips[0].Unmap().Is4() {
			same = append(same, addr)
		} else {
			other = append(other, addr)
		}
	}
	var addrs []netip.AddrPort
	for i := range max(len(same), len(other)) {
		if i < len(same) {
			addrs = append(addrs, same[i])
		}
		if i < len(other) {
			addrs = append(addrs, other[i])
		}
	}
	return addrs, nil
}

// LoadSSH returns what ssh's configuration says about a host.
func LoadSSH(ctx context.Context, arg string, opts *Options) (*sshconfig.Host, error) {
	login, host, err := ParseTarget(arg, opts)
	if err != nil {
		return nil, err
	}
	return sshconfig.Load(ctx, sshconfig.Query{Host: host, User: login, File: opts.Config, Identities: opts.Identities})
}
