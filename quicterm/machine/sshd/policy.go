//go:build linux || darwin

package sshd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
)

// A Policy is what settings allow a login: those of sshd, or the daemon's own where no sshd's hold.
type Policy struct {
	Sources Sources

	isOwn bool      // these are the daemon's own settings
	rules []Setting // those that were obeyed, as they were given

	// Settings of sshd_config(5), with nothing for none.
	allowUsers, denyUsers   []string
	allowGroups, denyGroups []string
	rootLogin               string
	chroot                  string
	command                 string // runs in place of what the client asks for, and of a key's command
	sftp                    string // the program of Subsystem sftp; auth.NoSFTP for none
	maxSessions             string
	refused                 bool
	pam                     bool
	noTerminal              bool
	maxTries                int
	keys                    bool
	keyOptions              []string
	methods                 []string
	algorithms              string
	minRSA                  int      // bits
	revokedKeys             []string // files

	forward             permit.Rules
	opens, listens      []string // nil for any
	noForward, noUnlink bool
	gateway, mask       string

	revoked *revokedFiles
	unnamed error // why the client's name is not known, if the settings may depend on it

	global
}

// global are the settings that apply to all logins, whichever Match blocks do.
type global struct {
	dns  bool // patterns match the client's name in the DNS
	port int  // the first one
}

// Parse reads what sshd -T prints. Settings that it does not know are left out.
func Parse(output []byte) (*Policy, error) {
	p := newPolicy()
	missing := map[string]bool{
		"port": true, "permitrootlogin": true, "pubkeyauthentication": true, "authorizedkeysfile": true,
	}
	for line := range strings.Lines(string(output)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name = strings.ToLower(name) // OpenSSH 10.5 prints PermitRootLogin, older ones permitrootlogin
		if err := p.set(name, value); err != nil {
			return nil, fmt.Errorf("%s %.100q: %w", name, value, err)
		}
		delete(missing, name)
	}
	for name := range missing {
		return nil, fmt.Errorf("it prints no %s", name)
	}
	p.sftp = cmp.Or(p.sftp, auth.NoSFTP)
	return p, nil
}

func newPolicy() *Policy {
	return &Policy{
		keys: true, methods: []string{"any"}, maxTries: math.MaxInt, revoked: new(revokedFiles), noUnlink: true,
	}
}

// A Setting is a keyword of sshd_config(5), in small letters, with a value.
type Setting struct{ Keyword, Value string }

// CheckPatterns returns the mistake in AllowUsers or DenyUsers for which sshd refuses an account that
// the pattern names.
func (p *Policy) CheckPatterns() error {
	for _, s := range p.rules {
		if s.Keyword != "allowusers" && s.Keyword != "denyusers" {
			continue
		}
		if _, hosts, limited := strings.Cut(s.Value, "@"); limited {
			if _, err := auth.MatchAddresses(hosts, netip.IPv6Unspecified()); err != nil {
				return fmt.Errorf("%s %s: %w", s.Keyword, s.Value, err)
			}
		}
	}
	return nil
}

// The kinds of settings whose values are no plain text, number, yes or no, or one of a list.
type (
	not   *bool                         // yes means no
	words *[]string                     // all on one line
	sftp  *string                       // the program behind the word sftp
	local struct{ local, remote *bool } // what may not be forwarded, from the side of the client
)

// items are the settings that count for logins by key, with where their values go.
var items = map[string]func(*Policy) any{
	"usedns":                      func(p *Policy) any { return &p.dns },
	"usepam":                      func(p *Policy) any { return &p.pam },
	"allowusers":                  func(p *Policy) any { return &p.allowUsers },
	"denyusers":                   func(p *Policy) any { return &p.denyUsers },
	"allowgroups":                 func(p *Policy) any { return &p.allowGroups },
	"denygroups":                  func(p *Policy) any { return &p.denyGroups },
	"permitrootlogin":             func(p *Policy) any { return &p.rootLogin },
	"refuseconnection":            func(p *Policy) any { return &p.refused },
	"maxsessions":                 func(p *Policy) any { return &p.maxSessions },
	"chrootdirectory":             func(p *Policy) any { return &p.chroot },
	"forcecommand":                func(p *Policy) any { return &p.command },
	"subsystem":                   func(p *Policy) any { return sftp(&p.sftp) },
	"permittty":                   func(p *Policy) any { return not(&p.noTerminal) },
	"maxauthtries":                func(p *Policy) any { return &p.maxTries },
	"pubkeyauthentication":        func(p *Policy) any { return &p.keys },
	"pubkeyauthoptions":           func(p *Policy) any { return words(&p.keyOptions) },
	"authenticationmethods":       func(p *Policy) any { return words(&p.methods) },
	"pubkeyacceptedalgorithms":    func(p *Policy) any { return &p.algorithms },
	"pubkeyacceptedkeytypes":      func(p *Policy) any { return &p.algorithms }, // before OpenSSH 8.5
	"requiredrsasize":             func(p *Policy) any { return &p.minRSA },
	"revokedkeys":                 func(p *Policy) any { return words(&p.revokedKeys) },
	"authorizedkeysfile":          func(p *Policy) any { return words(&p.Sources.Files) },
	"authorizedkeyscommand":       func(p *Policy) any { return &p.Sources.Program },
	"authorizedkeyscommanduser":   func(p *Policy) any { return &p.Sources.ProgramAccount },
	"trustedusercakeys":           func(p *Policy) any { return &p.Sources.Authorities },
	"authorizedprincipalsfile":    func(p *Policy) any { return &p.Sources.Principals },
	"authorizedprincipalscommand": func(p *Policy) any { return &p.Sources.PrincipalsProgram },
	"casignaturealgorithms":       func(p *Policy) any { return &p.Sources.CAAlgorithms },
	"allowagentforwarding":        func(p *Policy) any { return not(&p.forward.NoAgent) },
	"allowtcpforwarding":          func(p *Policy) any { return local{&p.forward.NoDial, &p.forward.NoListen} },
	"allowstreamlocalforwarding": func(p *Policy) any {
		return local{&p.forward.NoDialSocket, &p.forward.NoListenSocket}
	},
	"disableforwarding":     func(p *Policy) any { return &p.noForward },
	"permitopen":            func(p *Policy) any { return words(&p.opens) },
	"permitlisten":          func(p *Policy) any { return words(&p.listens) },
	"gatewayports":          func(p *Policy) any { return &p.gateway },
	"streamlocalbindmask":   func(p *Policy) any { return &p.mask },
	"streamlocalbindunlink": func(p *Policy) any { return not(&p.noUnlink) },
	"strictmodes":           func(p *Policy) any { return not(&p.Sources.Lax) },
}

// set applies a line. Those that do not count for logins by key are left out.
func (p *Policy) set(name, value string) (err error) {
	if name == "port" && p.port == 0 { // the first one, and no rule
		port, err := strconv.ParseUint(value, 10, 16)
		p.port = int(port)
		return err
	}
	item := items[name]
	if item == nil {
		return nil
	}
	text := value
	if none(value) {
		text = ""
	}
	switch field := item(p).(type) {
	case *bool:
		err = setSwitch(field, value, "yes", "no")
	case not:
		err = setSwitch(field, value, "no", "yes")
	case local:
		*field.local, *field.remote = value == "no" || value == "remote", value == "no" || value == "local"
		if !slices.Contains([]string{"yes", "all", "no", "local", "remote"}, value) {
			err = errors.New("neither yes, no, local nor remote")
		}
	case *int:
		*field, err = strconv.Atoi(value)
	case *string:
		*field = text
	case *[]string:
		*field = append(*field, value)
	case sftp:
		if program, ok := strings.CutPrefix(value, "sftp "); ok {
			*field = program
		}
	case words:
		*field = slices.DeleteFunc(strings.Fields(value), none)
	}
	if text != "" {
		p.rules = append(p.rules, Setting{name, value})
	}
	return err
}

func setSwitch(field *bool, value, on, off string) error {
	if value != on && value != off {
		return errors.New("neither yes nor no")
	}
	*field = value == on
	return nil
}

func none(value string) bool { return strings.EqualFold(value, "none") }

// Admit returns why an account does not get in, or nil. It follows allowed_user and
// auth_root_allowed of OpenSSH. The client's name is its address if the DNS is not asked.
func (p *Policy) Admit(ctx context.Context, l *Login, host string) error {
	locked := false
	if !p.pam {
		var err error
		if locked, err = l.Locked(); err != nil {
			return err
		}
	}
	switch {
	case p.refused:
		return p.refusal("RefuseConnection")
	case locked:
		return p.refusal("a locked password without UsePAM")
	case p.chroot != "":
		return unsupported("ChrootDirectory")
	case p.maxSessions == "0":
		return p.refusal("MaxSessions 0")
	case l.UID == 0 && p.rootLogin == "forced-commands-only":
		// The key decides: see AcceptCommand.
	case l.UID == 0 && !slices.Contains([]string{"yes", "prohibit-password", "without-password"}, p.rootLogin):
		return p.refusal("PermitRootLogin " + p.rootLogin)
	}
	if forced := (auth.Permissions{Command: p.command}); !forced.Valid() {
		return unsupported("ForceCommand that is not UTF-8 or too long")
	}
	if !p.isOwn {
		if err := p.checkShell(l.Shell); err != nil {
			return err
		}
	}
	return p.admitByName(ctx, l, host)
}

// admitByName obeys the settings that name users and groups.
func (p *Policy) admitByName(ctx context.Context, l *Login, host string) error {
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
		return p.refusal("DenyGroups")
	case len(p.allowGroups) > 0 && !in(p.allowGroups):
		return p.refusal("AllowGroups")
	}
	return nil
}

// ErrRefused is the error of a login that does not get in because of settings. Other errors say
// that this is not known now.
var ErrRefused = errors.New("refused")

// refusal is the error of a login that is refused because of a setting.
func (p *Policy) refusal(setting string) error {
	if p.isOwn {
		return fmt.Errorf("%w by the setting %s", ErrRefused, ownNames[strings.ToLower(setting)])
	}
	return fmt.Errorf("%w as by sshd: %s", ErrRefused, setting)
}

// refuseUser returns why patterns of AllowUsers or DenyUsers refuse a user. That is no refusal
// if it may depend on the client's name, and this is not known now.
func (p *Policy) refuseUser(setting string, patterns []string, user string, cause error) error {
	switch {
	case cause != nil:
		return fmt.Errorf("%w: %w", p.refusal(setting), cause)
	case p.unnamed != nil && slices.ContainsFunc(patterns, func(pattern string) bool { return namesHost(pattern, user) }):
		return fmt.Errorf("%s, and the client's name is not known: %w", setting, p.unnamed)
	}
	return p.refusal(setting)
}

func unsupported(setting string) error {
	return fmt.Errorf(
		`%w as by sshd: %s, which is not supported: a Match block without it, or sshd_policy = "ignore", lets the account in`,
		ErrRefused, setting)
}

// checkShell refuses an account whose shell cannot be executed.
func (p *Policy) checkShell(shell string) error {
	info, err := os.Stat(shell)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", p.refusal("the shell does not exist"), err)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return p.refusal("the shell " + shell + " cannot be executed")
	}
	return nil
}

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
