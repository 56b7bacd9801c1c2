package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A target is a server, and our account and keys there.
type target struct {
	typed string // [user@]name
	name  string // as the user typed it
	host  string // for DNS
	alias string // for known_hosts
	user  string
	port  uint16
	local bool // this machine and account: a grant gives access

	sshArgs []string // by which the ssh program reaches it

	identities     []string
	identitiesOnly bool
	agent          string           // socket, or empty
	knownHosts     []string         // files of the user; the first gets keys that are accepted
	globalHosts    []string         // files of the system
	unknownHosts   sshconfig.Policy // what to do about a key in no file
	network        string           // IP versions to use, as net.Resolver.LookupNetIP has it
	batch          bool             // ask the user nothing
	hashHosts      bool             // add the names of hosts as hashes
	config         *sshconfig.Host
	hostRules      auth.HostRules
	userRules      auth.KeyRules
}

// loadKnownHosts returns the keys that are known for the target.
func (t *target) loadKnownHosts() (*auth.KnownHosts, error) {
	known, err := auth.LoadKnownHosts(t.alias, t.port, slices.Concat(t.knownHosts, t.globalHosts))
	if err != nil {
		return nil, err
	}
	if err := known.Restrict(t.hostRules); err != nil || t.config.KnownHostsCommand == nil {
		return known, err
	}
	for _, host := range known.Hosts() {
		lines, err := t.config.KnownHostsCommand(host)
		if err != nil {
			return nil, err
		}
		known.Add("KnownHostsCommand", lines)
	}
	return known, nil
}

// options are the flags that say how to reach a server.
type options struct {
	user       string
	port       uint16
	identities []string
	config     string // of ssh
	verbose    bool
	redundant  bool
	bootstrap  string // or empty: as the setting says
	predict    string // or empty: as the setting says
	escape     string // or empty: as the setting says
	master     string // socket of an ssh connection that another login may use, or empty
	role       wire.Role
	ownSize    bool // with role share: the session takes the size of our terminal
	replay     wire.Replay

	// inspect is told of the daemon's keys, and why they are not accepted. The user can then
	// accept none. It may be nil.
	inspect func(key ssh.PublicKey, err error)
}

// log returns where to log to.
func (o *options) log() *slog.Logger {
	if o.verbose {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// addTargetFlags adds the flags that say which server to reach.
func addTargetFlags(c *cobra.Command, opts *options) {
	f := c.Flags()
	f.VarP((*port)(&opts.port), "port", "p", "UDP and TCP `port` of the daemon, which is reached directly (default: the setting port, 4433)")
	f.Var((*bootstrapMode)(&opts.bootstrap), "bootstrap", "how to reach the server first: `auto`, ssh or direct (default: the setting bootstrap)")
	addLoginFlags(c, opts)
}

// addLoginFlags adds those of them that ssh has too.
func addLoginFlags(c *cobra.Command, opts *options) {
	f := c.Flags()
	f.StringVarP(&opts.user, "login", "l", "", "log in as this `user`")
	f.StringArrayVarP(&opts.identities, "identity", "i", nil, "private key `file` to offer; may be repeated")
	f.StringVarP(&opts.config, "config", "F", "", "`file` to read instead of ssh's own configuration files")
	f.BoolVarP(&opts.verbose, "verbose", "v", false, "log to standard error")
}

// A bootstrapMode is the value of a flag.
type bootstrapMode string

func (m *bootstrapMode) Set(s string) error {
	if !slices.Contains([]string{"auto", "ssh", "direct"}, s) {
		return errors.New("it must be auto, ssh or direct")
	}
	*m = bootstrapMode(s)
	return nil
}

func (m *bootstrapMode) String() string { return "" }

func (m *bootstrapMode) Type() string { return "auto" }

// A port is the value of a flag.
type port uint16

func (p *port) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return errors.New("a port is a number from 1 to 65535")
	}
	*p = port(n)
	return nil
}

// String returns nothing for the default, which the help then does not show.
func (p *port) String() string { return "" }

func (p *port) Type() string { return "port" }

// thisMachine is the argument that names this machine. Commands whose host may be left out are for it then.
const thisMachine = "."

// splitHost separates the host, with which arguments begin, from the rest. A lone argument is a host, never a
// session; without any, the host is this machine.
func splitHost(args []string) (host string, rest []string) {
	if len(args) == 0 {
		return thisMachine, nil
	}
	return args[0], args[1:]
}

// parseTarget splits [user@]host.
func parseTarget(s string, opts *options) (user, host string, err error) {
	host = s
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		user, host = s[:i], s[i+1:]
	}
	if opts.user != "" {
		user = opts.user
	}
	if host == thisMachine {
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
	if host == "" || strings.HasPrefix(host, "-") || strings.ContainsAny(host, ` /$\`+ofShells) || host != wire.Printable(host, len(host)) {
		return "", "", fmt.Errorf("%q is not a host", s)
	}
	return user, host, nil
}

// findTarget returns a target as the flags, the settings and ssh's configuration describe
// it.
func findTarget(ctx context.Context, arg string, opts *options, defaultPort uint16) (*target, error) {
	login, host, err := parseTarget(arg, opts)
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	t := &target{typed: arg, name: host, host: host, user: login, port: defaultPort}
	if opts.port != 0 {
		t.port = opts.port
	}
	isMe := login == "" || login == me.Username
	if isLoopback(host) && opts.port == 0 && isMe && len(opts.identities) == 0 {
		t.local, t.user = true, me.Username
		return t, nil
	}
	for _, file := range opts.identities {
		if _, err := os.Stat(file); err != nil {
			if _, pubErr := os.Stat(file + ".pub"); pubErr != nil {
				return nil, fmt.Errorf("identity: %w", err)
			}
		}
	}
	config, err := sshconfig.Load(ctx, sshconfig.Query{Host: host, User: login, File: opts.config, Identities: opts.identities})
	if err != nil {
		return nil, err
	}
	t.apply(config)
	t.sshArgs = append(config.Undo, sshArgs(login, host, opts)...)
	return t, nil
}

// sshArgs returns the arguments by which ssh reaches a host as these options say.
func sshArgs(login, host string, opts *options) []string {
	var args []string
	if opts.master != "" {
		args = append(args, "-o", "ControlPath="+opts.master)
	}
	if opts.config != "" {
		args = append(args, "-F", opts.config)
	}
	if login != "" {
		args = append(args, "-l", login)
	}
	for _, file := range opts.identities {
		args = append(args, "-i", file)
	}
	return append(args, "--", host)
}

// server names the target and our account there. Behind one address, each port of sshd may be
// another machine.
func (t *target) server() string {
	return t.user + "@" + net.JoinHostPort(t.host, strconv.Itoa(int(t.config.Port)))
}

// apply fills in what ssh's configuration says.
func (t *target) apply(h *sshconfig.Host) {
	t.config = h
	t.user, t.host, t.alias, t.network = h.User, h.Hostname, h.Alias, h.Network
	t.identities, t.identitiesOnly, t.agent = h.Identities, h.IdentitiesOnly, h.Agent
	t.knownHosts, t.globalHosts, t.unknownHosts = h.KnownHosts, h.GlobalKnownHosts, h.Unknown
	t.batch, t.hashHosts = h.Batch, h.HashKnownHosts
	t.hostRules = auth.HostRules{
		KeyRules:     auth.KeyRules{Algorithms: h.HostKeyAlgorithms, MinRSA: h.MinRSA},
		CAAlgorithms: h.CAAlgorithms,
		RevokedKeys:  h.RevokedHostKeys,
	}
	t.userRules = auth.KeyRules{Algorithms: h.UserKeyAlgorithms, MinRSA: h.MinRSA}
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// resolve returns the addresses of the target, with the IP families in turn (RFC 8305,
// 4).
func (t *target) resolve(ctx context.Context) ([]netip.AddrPort, error) {
	ips, err := newResolver().LookupNetIP(ctx, t.network, t.host)
	if err != nil {
		return nil, err
	}
	var same, other []netip.AddrPort
	for _, ip := range ips {
		addr := netip.AddrPortFrom(ip.Unmap(), t.port)
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
