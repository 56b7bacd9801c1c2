package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// A target is a server and who we are there.
type target struct {
	name  string // as the person calls it
	host  string // to look up in DNS
	alias string // to look up in known_hosts
	user  string
	port  uint16
	local bool // this very machine, by a grant

	identities     []string
	identitiesOnly bool
	agent          string // socket, or empty
	knownHosts     []string
}

// options are the flags that say how to find a target.
type options struct {
	user       string
	port       uint16
	identities []string
	config     string // of ssh
	verbose    bool
	redundant  bool
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
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if host == "" || strings.HasPrefix(host, "-") || strings.ContainsAny(host, " \t\r\n/") {
		return "", "", fmt.Errorf("%q is not a host", s)
	}
	return user, host, nil
}

// findTarget finds out all about a target from ssh's configuration and ours.
func findTarget(ctx context.Context, s string, opts *options, port uint16) (*target, error) {
	name, host, err := parseTarget(s, opts)
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	t := &target{name: host, host: host, user: name, port: port}
	if opts.port != 0 {
		t.port = opts.port
	}
	isMe := name == "" || name == me.Username
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
	values, err := sshConfig(ctx, name, host, opts)
	if err != nil {
		return nil, err
	}
	t.fill(values, me)
	if len(opts.identities) > 0 {
		t.identities = append(opts.identities, t.identities...)
	}
	return t, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// sshConfig returns what ssh would use for a host, by lower-case key. Without
// a login, that is up to ssh too.
func sshConfig(ctx context.Context, login, host string, opts *options) (map[string][]string, error) {
	args := []string{"-G"}
	if login != "" {
		args = append(args, "-l", login)
	}
	if opts.config != "" {
		args = append(args, "-F", opts.config)
	}
	cmd := exec.CommandContext(ctx, "ssh", append(args, "--", host)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return readSSHConfig(host, opts)
	}
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return nil, fmt.Errorf("ssh does not accept its configuration for %s: %s", host, line)
	}
	values := make(map[string][]string)
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), " "); ok {
			values[key] = append(values[key], value)
		}
	}
	return values, nil
}

// readSSHConfig reads ssh's configuration where there is no ssh to ask.
func readSSHConfig(host string, opts *options) (map[string][]string, error) {
	file := opts.config
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		file = filepath.Join(home, ".ssh", "config")
	}
	values := make(map[string][]string)
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) && opts.config == "" {
		return values, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	config, err := ssh_config.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, key := range []string{"hostname", "user", "hostkeyalias", "identityfile", "identitiesonly", "identityagent", "userknownhostsfile"} {
		found, err := config.GetAll(host, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(found) > 0 {
			values[key] = found
		}
	}
	return values, nil
}

// Where ssh looks when nothing else is said.
var (
	defaultIdentities = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
	defaultKnownHosts = []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}
	globalKnownHosts  = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
)

// fill takes over what ssh would use.
func (t *target) fill(values map[string][]string, me *user.User) {
	first := func(key, otherwise string) string {
		if v := values[key]; len(v) > 0 && v[0] != "" && v[0] != "none" {
			return v[0]
		}
		return otherwise
	}
	if t.user == "" {
		t.user = first("user", me.Username)
	}
	t.host = strings.ReplaceAll(first("hostname", t.host), "%h", t.host)
	t.alias = first("hostkeyalias", t.host)
	t.identitiesOnly = first("identitiesonly", "no") == "yes"
	expand := func(files []string) []string {
		var expanded []string
		for _, f := range files {
			if f != "none" {
				expanded = append(expanded, t.expand(f, me))
			}
		}
		return expanded
	}
	t.identities = expand(defaultIdentities)
	if v := values["identityfile"]; len(v) > 0 {
		t.identities = expand(v)
	}
	t.knownHosts = expand(defaultKnownHosts)
	if v := values["userknownhostsfile"]; len(v) > 0 {
		t.knownHosts = expand(strings.Fields(strings.Join(v, " ")))
	}
	global := globalKnownHosts
	if v := values["globalknownhostsfile"]; len(v) > 0 {
		global = strings.Fields(strings.Join(v, " "))
	}
	t.knownHosts = append(t.knownHosts, global...)
	t.agent = os.Getenv("SSH_AUTH_SOCK")
	if v := values["identityagent"]; len(v) > 0 {
		switch agent := v[0]; {
		case agent == "none":
			t.agent = ""
		case strings.HasPrefix(agent, "$"):
			t.agent = os.Getenv(strings.Trim(agent[1:], "{}"))
		case agent != "SSH_AUTH_SOCK":
			t.agent = t.expand(agent, me)
		}
	}
}

// expand replaces ~ and the tokens of ssh_config(5) in a file name.
func (t *target) expand(file string, me *user.User) string {
	if file == "~" || strings.HasPrefix(file, "~/") {
		file = me.HomeDir + file[1:]
	}
	return strings.NewReplacer("%%", "%", "%d", me.HomeDir, "%h", t.host, "%n", t.name,
		"%r", t.user, "%u", me.Username, "%i", me.Uid).Replace(file)
}

// resolve returns the addresses of the target, those of both families in turn
// (RFC 8305, 4).
func (t *target) resolve(ctx context.Context) ([]netip.AddrPort, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", t.host)
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
