package sshconfig

import (
	"fmt"
	"os"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// A Host is what the configuration says about one. File names are expanded.
type Host struct {
	Name     string // as the user typed it
	Hostname string // for DNS
	Alias    string // for known_hosts
	KnownAs  string // what ssh looks for in known_hosts: an alias, a name, or [name]:port
	User     string
	Port     uint16 // of sshd
	Network  string // "ip", "ip4" or "ip6", as net.Resolver.LookupNetIP has it
	Batch    bool   // ask the user nothing

	Identities     []string // private key files, best first
	Certificates   []string // files, which need not exist
	IdentitiesOnly bool     // of the agent's keys, offer only those that are in a file too
	Agent          string   // its socket, on Windows also a named pipe, or empty

	OfferedAgent string // the socket of the agent that a server may use if it is forwarded, or empty
	ForwardAgent bool   // the configuration forwards it, unless the server's key is not known

	KnownHosts       []string // files of the user; the first gets keys that are accepted
	GlobalKnownHosts []string // files of the system
	Unknown          Policy
	HashKnownHosts   bool
	RevokedHostKeys  string // a file, or empty

	// Algorithms as ssh names them; nil for all.
	HostKeyAlgorithms []string
	CAAlgorithms      []string // by which authorities sign
	UserKeyAlgorithms []string
	MinRSA            int // the size of the smallest RSA key, in bits

	Forwards         [][2]string // each a letter, L, R or D, and what ssh takes behind it as a flag
	NoForwards       bool        // also none of the command line
	StrictForwards   bool        // a forward that fails at its start ends all
	PermitRemoteOpen []string    // where connections by SOCKS from the server may go; nil for anywhere

	Piped  bool // ssh itself talks to a proxy by a pipe
	Shared bool // ssh shares connections of other ssh processes

	// Undo has the flags of ssh that undo what the configuration says of a login: that ssh does not
	// run a command, does not read, or goes to the background.
	Undo []string
}

// A Policy says what to do about a server whose key is in no known_hosts file.
type Policy int

const (
	Ask    Policy = iota // the user, on a terminal; without one, refuse it
	Accept               // add it to the first file
	Refuse
)

// The defaults of ssh.
var (
	defaultIdentities = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
	defaultKnownHosts = []string{"~/.ssh/known_hosts ~/.ssh/known_hosts2"}
	defaultGlobal     = []string{"/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"}
)

// newHost returns the host that values describe. `ssh -G` has expanded some of them.
func newHost(q Query, v values, me *user.User) (*Host, error) {
	h := &Host{Name: q.Host, User: q.User}
	if h.User == "" {
		h.User = v.one("user", me.Username)
	}
	if reason := v.one("refuseconnection", "none"); reason != "none" {
		return nil, fmt.Errorf("ssh's configuration for %s refuses connections: %s", q.Host, reason)
	}
	port, err := strconv.ParseUint(v.one("port", "22"), 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("ssh's configuration for %s: bad port %q", q.Host, v.one("port", ""))
	}
	h.Port = uint16(port)
	h.Hostname = v.one("hostname", q.Host)
	h.Alias = v.one("hostkeyalias", h.Hostname)
	h.KnownAs = v.one("hostkeyalias", "")
	if h.KnownAs == "" {
		h.KnownAs = h.Hostname
		if h.Port != 22 {
			h.KnownAs = fmt.Sprintf("[%s]:%d", h.Hostname, h.Port)
		}
	}
	h.Network = map[string]string{"inet": "ip4", "inet6": "ip6"}[v.one("addressfamily", "any")]
	if h.Network == "" {
		h.Network = "ip"
	}
	h.Batch = v.isSet("batchmode")
	h.HashKnownHosts = v.isSet("hashknownhosts")
	h.Unknown = parsePolicy(v.one("stricthostkeychecking", "ask"))
	if h.Batch && h.Unknown == Ask {
		h.Unknown = Refuse
	}

	x := newExpander(h, me, v.one("hostkeyalias", q.Host))
	if file := strings.Trim(v.one("revokedhostkeys", "none"), `"`); file != "none" {
		// A name that cannot be expanded stays: what is revoked must not become unknown.
		h.RevokedHostKeys = append(x.files([]string{file}), file)[0]
	}
	h.HostKeyAlgorithms = v.names("hostkeyalgorithms")
	h.CAAlgorithms = v.names("casignaturealgorithms")
	h.UserKeyAlgorithms = v.names("pubkeyacceptedalgorithms")
	if h.MinRSA, err = strconv.Atoi(v.one("requiredrsasize", "0")); err != nil {
		return nil, fmt.Errorf("ssh's configuration for %s: RequiredRSASize: %w", q.Host, err)
	}
	h.IdentitiesOnly = v.isSet("identitiesonly")
	// Named keys come first, and without the default ones behind them, as to ssh.
	configured := v["identityfile"]
	if len(configured) == 0 && len(q.Identities) == 0 {
		configured = defaultIdentities
	}
	configured = slices.DeleteFunc(slices.Clone(configured), func(f string) bool {
		return f == "none" || slices.Contains(q.Identities, f)
	})
	h.Identities = append(slices.Clone(q.Identities), x.files(configured)...)
	h.Certificates = x.files(v["certificatefile"])
	if len(v["certificatefile"]) == 0 {
		for _, file := range h.Identities {
			h.Certificates = append(h.Certificates, file+"-cert.pub")
		}
	}
	for _, file := range v.list("userknownhostsfile", defaultKnownHosts) {
		h.KnownHosts = append(h.KnownHosts, x.tilde(file))
	}
	h.GlobalKnownHosts = x.files(v.list("globalknownhostsfile", defaultGlobal))
	switch agent := v.one("identityagent", "SSH_AUTH_SOCK"); {
	case agent == "none":
	case agent == "SSH_AUTH_SOCK":
		if h.Agent = os.Getenv("SSH_AUTH_SOCK"); h.Agent == "" && runtime.GOOS == "windows" {
			h.Agent = `\\.\pipe\openssh-ssh-agent` // that of Windows' own service
		}
	case strings.HasPrefix(agent, "$") && !strings.HasPrefix(agent, "${"):
		h.Agent = os.Getenv(agent[1:])
	default:
		h.Agent = agent
	}
	h.OfferedAgent = h.Agent
	switch forwarded := v.one("forwardagent", "no"); forwarded {
	case "no", "false":
	case "yes", "true":
		h.ForwardAgent = true
	default:
		h.ForwardAgent = true
		if h.OfferedAgent = forwarded; strings.HasPrefix(forwarded, "$") {
			h.OfferedAgent = os.Getenv(forwarded[1:])
		}
	}
	if strict := v.one("stricthostkeychecking", "ask"); slices.Contains([]string{"no", "off", "false"}, strict) {
		h.ForwardAgent = false // the server may be another one, to which ssh forwards none either
	}
	if v.isOff("pubkeyauthentication") {
		h.Agent, h.Identities, h.Certificates = "", nil, nil
	}
	h.NoForwards, h.StrictForwards = v.isSet("clearallforwardings"), v.isSet("exitonforwardfailure")
	h.Forwards = forwards(v["localforward"], v["remoteforward"], v["dynamicforward"])
	if permitted := strings.Fields(v.one("permitremoteopen", "any")); !slices.Contains(permitted, "any") {
		h.PermitRemoteOpen = slices.DeleteFunc(permitted, func(p string) bool { return p == "none" })
	}
	proxied := v.one("proxycommand", "none") != "none" || v.one("proxyjump", "none") != "none"
	h.Piped = proxied && !v.isSet("proxyusefdpass")
	h.Shared = v.one("controlpath", "none") != "none"
	for _, option := range []string{"SessionType=default", "StdinNull=no", "ForkAfterAuthentication=no"} {
		name, usual, _ := strings.Cut(option, "=")
		if v.one(strings.ToLower(name), usual) != usual { // an older ssh does not know it
			h.Undo = append(h.Undo, "-o", option)
		}
	}
	return h, nil
}

// parsePolicy returns what ssh's StrictHostKeyChecking means here. ssh connects with no
// and off even if the key has changed, and then only keeps passwords and forwarded ports and
// agents from the server. There is nothing here that could be kept from it, except what is
// typed: a changed key is refused under every policy.
func parsePolicy(strict string) Policy {
	switch strings.ToLower(strict) {
	case "ask":
		return Ask
	case "accept-new", "no", "off", "false":
		return Accept
	}
	return Refuse
}

// forwards returns what `ssh -G` prints of forwards as the flags of ssh.
func forwards(local, remote, dynamic []string) (all [][2]string) {
	for _, value := range local {
		listen, target, _ := strings.Cut(value, " ")
		all = append(all, [2]string{"L", listen + ":" + target})
		// It prints one with the path of a socket a second time, as if it were dynamic.
		dynamic = slices.DeleteFunc(dynamic, func(d string) bool { return d == listen })
	}
	for _, value := range remote {
		listen, target, _ := strings.Cut(value, " ")
		if target != "[socks]:0" {
			listen += ":" + target
		}
		all = append(all, [2]string{"R", listen})
	}
	for _, value := range dynamic {
		all = append(all, [2]string{"D", value})
	}
	return all
}
