package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// sshConfig returns ssh's configuration for a host, by lower-case key. An empty login
// leaves the user to ssh too.
func sshConfig(ctx context.Context, login, host string, opts *options) (map[string][]string, error) {
	args := []string{"-G"}
	if login != "" {
		args = append(args, "-l", login)
	}
	if opts.config != "" {
		args = append(args, "-F", opts.config)
	}
	for _, file := range opts.identities { // so that ssh leaves its default files out
		args = append(args, "-i", file)
	}
	cmd := exec.CommandContext(ctx, "ssh", append(args, "--", host)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return readSSHConfig(host, opts)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return nil, fmt.Errorf("ssh rejects its configuration for %s: %s", host, line)
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

// readSSHConfig reads the user's configuration of ssh on a machine without ssh.
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
	for _, key := range []string{"hostname", "user", "hostkeyalias", "identityfile", "identitiesonly", "identityagent", "userknownhostsfile",
		"globalknownhostsfile", "stricthostkeychecking"} {
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

// The defaults of ssh.
var (
	defaultIdentities = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
	defaultKnownHosts = []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}
	globalKnownHosts  = []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}
)

// A hostPolicy says what to do about a server whose key is in no known_hosts file.
type hostPolicy int

const (
	askUser   hostPolicy = iota // on a terminal; without one, refuse it
	acceptNew                   // add it to the first file
	refuseNew
)

// parseHostPolicy returns what ssh's StrictHostKeyChecking means here. ssh connects with no
// and off even if the key has changed, and then only keeps passwords and forwarded ports and
// agents from the server. There is nothing here that could be kept from it, except what is
// typed: a changed key is refused under every policy.
func parseHostPolicy(strict string) hostPolicy {
	switch strings.ToLower(strict) {
	case "ask":
		return askUser
	case "accept-new", "no", "off", "false":
		return acceptNew
	}
	return refuseNew
}

// apply fills in what ssh's configuration says.
func (t *target) apply(values map[string][]string, me *user.User) {
	first := func(key, fallback string) string {
		if v := values[key]; len(v) > 0 && v[0] != "" && v[0] != "none" {
			return v[0]
		}
		return fallback
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
	t.globalHosts = expand(global)
	t.unknownHosts = parseHostPolicy(first("stricthostkeychecking", "ask"))
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
