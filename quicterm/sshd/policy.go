//go:build linux || darwin

package sshd

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// A Policy is what sshd's settings allow a login.
type Policy struct {
	// AuthorizedKeysFiles are the patterns of sshd_config(5) of the files with the keys.
	AuthorizedKeysFiles []string

	// Command runs instead of what the client asks for, and instead of a key's command,
	// unless it is empty.
	Command string

	NoPTY       bool // there is no terminal
	Verified    bool // a security key must verify its user
	KeysCommand bool // sshd also gets keys from AuthorizedKeysCommand, which is not asked here

	allowUsers, denyUsers   []string
	allowGroups, denyGroups []string
	rootLogin               string
	chroot                  bool
	sessions                bool
	refused                 bool
	pam                     bool

	keys        bool
	methods     []string
	algorithms  string
	minRSA      int    // bits
	revokedKeys string // a file
	revoked     *revokedFile
	unnamed     error // why the client's name is not known, if the settings may depend on it

	global
}

// global are the settings that apply to all logins, whichever Match blocks do.
type global struct {
	dns  bool // patterns match the client's name in the DNS
	port int  // the first one
}

// Parse reads what sshd -T prints. Settings that it does not know are left out.
func Parse(output []byte) (*Policy, error) {
	p := &Policy{keys: true, sessions: true, methods: []string{"any"}}
	missing := map[string]bool{
		"port": true, "permitrootlogin": true, "pubkeyauthentication": true, "authorizedkeysfile": true,
	}
	for line := range strings.Lines(string(output)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if err := p.set(name, value); err != nil {
			return nil, fmt.Errorf("%s %.100q: %w", name, value, err)
		}
		delete(missing, name)
	}
	for name := range missing {
		return nil, fmt.Errorf("it prints no %s", name)
	}
	return p, nil
}

// set applies a line.
func (p *Policy) set(name, value string) (err error) {
	is := func(set bool) bool { return value == "yes" == set }
	switches := []string{"pubkeyauthentication", "permittty", "refuseconnection", "usepam", "usedns"}
	if slices.Contains(switches, name) && value != "yes" && value != "no" {
		return errors.New("neither yes nor no")
	}
	switch name {
	case "port":
		if p.port == 0 {
			var port uint64
			port, err = strconv.ParseUint(value, 10, 16)
			p.port = int(port)
		}
	case "usedns":
		p.dns = is(true)
	case "usepam":
		p.pam = is(true)
	case "allowusers":
		p.allowUsers = append(p.allowUsers, value)
	case "denyusers":
		p.denyUsers = append(p.denyUsers, value)
	case "allowgroups":
		p.allowGroups = append(p.allowGroups, value)
	case "denygroups":
		p.denyGroups = append(p.denyGroups, value)
	case "permitrootlogin":
		p.rootLogin = value
	case "refuseconnection":
		p.refused = is(true)
	case "maxsessions":
		p.sessions = value != "0"
	case "chrootdirectory":
		p.chroot = !none(value)
	case "forcecommand":
		if !none(value) {
			p.Command = value
		}
	case "permittty":
		p.NoPTY = is(false)
	case "pubkeyauthentication":
		p.keys = is(true)
	case "authenticationmethods":
		p.methods = strings.Fields(value)
	case "pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes": // before OpenSSH 8.5
		p.algorithms = value
	case "pubkeyauthoptions":
		p.Verified = slices.Contains(strings.Fields(value), "verify-required")
	case "requiredrsasize":
		p.minRSA, err = strconv.Atoi(value)
	case "authorizedkeysfile":
		p.AuthorizedKeysFiles = slices.DeleteFunc(strings.Fields(value), none)
	case "authorizedkeyscommand":
		p.KeysCommand = !none(value)
	case "revokedkeys":
		if p.revokedKeys = value; none(value) {
			p.revokedKeys = ""
		}
	}
	return err
}

// none reports whether the value of a setting means that there is none.
func none(value string) bool { return strings.EqualFold(value, "none") }

// admit returns why an account does not get in, or nil. It follows allowed_user and
// auth_root_allowed of OpenSSH.
func (p *Policy) admit(ctx context.Context, l *Login, host string) error {
	locked := false
	if !p.pam {
		var err error
		if locked, err = l.Locked(); err != nil {
			return err
		}
	}
	switch {
	case p.refused:
		return refusal("RefuseConnection")
	case locked:
		return refusal("a locked password without UsePAM")
	case p.chroot:
		return unsupported("ChrootDirectory")
	case !p.sessions:
		return refusal("MaxSessions 0")
	case l.UID == 0 && p.rootLogin == "forced-commands-only":
		// The key decides: see AcceptCommand.
	case l.UID == 0 && !slices.Contains([]string{"yes", "prohibit-password", "without-password"}, p.rootLogin):
		return refusal("PermitRootLogin " + p.rootLogin)
	}
	if strings.HasPrefix(p.Command, "internal-sftp") {
		return unsupported("ForceCommand internal-sftp")
	}
	if err := checkShell(l.Shell); err != nil {
		return err
	}
	if denied, err := matchUsers(p.denyUsers, l.User, host, plain(l.Client)); denied || err != nil {
		return p.refuseUser("DenyUsers", p.denyUsers, l.User, err)
	}
	if len(p.allowUsers) > 0 {
		if allowed, err := matchUsers(p.allowUsers, l.User, host, plain(l.Client)); !allowed || err != nil {
			return p.refuseUser("AllowUsers", p.allowUsers, l.User, err)
		}
	}
	if len(p.denyGroups)+len(p.allowGroups) == 0 {
		return nil
	}
	groups, err := l.Groups(ctx)
	if err != nil {
		return err
	}
	in := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			return slices.ContainsFunc(groups, func(g string) bool { return auth.MatchPattern(pattern, g) })
		})
	}
	switch {
	case len(groups) == 0, in(p.denyGroups):
		return refusal("DenyGroups")
	case len(p.allowGroups) > 0 && !in(p.allowGroups):
		return refusal("AllowGroups")
	}
	return nil
}

// ErrRefused is the error of a login that does not get in because of sshd's settings. Other
// errors say that this is not known now.
var ErrRefused = errors.New("refused as by sshd")

// refusal is the error of a login that sshd would refuse because of a setting.
func refusal(setting string) error { return fmt.Errorf("%w: %s", ErrRefused, setting) }

// refuseUser returns why patterns of AllowUsers or DenyUsers refuse a user. That is no refusal
// if it may depend on the client's name, and this is not known now.
func (p *Policy) refuseUser(setting string, patterns []string, user string, cause error) error {
	switch {
	case cause != nil:
		return fmt.Errorf("%w: %w", refusal(setting), cause)
	case p.unnamed != nil && slices.ContainsFunc(patterns, func(pattern string) bool { return namesHost(pattern, user) }):
		return fmt.Errorf("%s, and the client's name is not known: %w", setting, p.unnamed)
	}
	return refusal(setting)
}

// unsupported is the error of a login that sshd would treat in a way that this daemon cannot.
func unsupported(setting string) error {
	return fmt.Errorf(
		`%w: %s, which is not supported: a Match block without it, or sshd_policy = "ignore", lets the account in`,
		ErrRefused, setting)
}

// checkShell refuses an account whose shell cannot be executed.
func checkShell(shell string) error {
	info, err := os.Stat(shell)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", refusal("the shell does not exist"), err)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return refusal("the shell " + shell + " cannot be executed")
	}
	return nil
}

// matchUsers reports whether a pattern of AllowUsers or DenyUsers matches a login.
func matchUsers(patterns []string, user, host string, client netip.Addr) (bool, error) {
	for _, pattern := range patterns {
		name, hosts, limited := strings.Cut(pattern, "@")
		if !auth.MatchPattern(name, user) {
			continue
		}
		if !limited {
			return true, nil
		}
		if matched, err := matchHost(hosts, host, client); matched || err != nil {
			return matched, err
		}
	}
	return false, nil
}

// AcceptKey returns why a key does not get in, or nil. Only an error that wraps ErrRefused is
// definite.
func (p *Policy) AcceptKey(key ssh.PublicKey) error {
	accepted := func(algorithm string) bool { return matchList(p.algorithms, algorithm) > 0 }
	switch {
	case !p.keys:
		return refusal("PubkeyAuthentication no")
	case !slices.Contains(p.methods, "any") && !slices.Contains(p.methods, "publickey"):
		return unsupported("AuthenticationMethods " + strings.Join(p.methods, " "))
	case p.algorithms != "" && !slices.ContainsFunc(algorithms(key), accepted):
		return refusal("PubkeyAcceptedAlgorithms does not have " + key.Type())
	}
	if wrapped, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := wrapped.CryptoPublicKey().(*rsa.PublicKey); ok && public.N.BitLen() < p.minRSA {
			return refusal("RequiredRSASize " + strconv.Itoa(p.minRSA))
		}
	}
	if p.revokedKeys == "" {
		return nil
	}
	revoked, err := p.revoked.has(p.revokedKeys, key)
	if err != nil {
		return fmt.Errorf("RevokedKeys cannot be read: %w", err)
	}
	if revoked {
		return refusal("RevokedKeys has it")
	}
	return nil
}

// algorithms returns the names of the signatures that a key makes.
func algorithms(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{key.Type()}
}

// AcceptCommand returns why a login does not get in whose key has a command, or none, or nil.
func (p *Policy) AcceptCommand(uid uint32, command string) error {
	if uid == 0 && p.rootLogin == "forced-commands-only" && command == "" {
		return refusal("PermitRootLogin forced-commands-only")
	}
	return nil
}
