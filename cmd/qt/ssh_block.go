package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
)

// A block is a part of ssh's configuration for some hosts.
type block struct{ lines []string }

func (b *block) String() string { return strings.Join(b.lines, "\n    ") + "\n" }

func (b *block) add(option string, args ...string) {
	for i, arg := range args {
		if strings.ContainsAny(arg, " \t#") {
			args[i] = `"` + arg + `"`
		}
	}
	b.lines = append(b.lines, option+" "+strings.Join(args, " "))
}

// addFiles adds an option with names of files, in which ssh replaces tokens.
func (b *block) addFiles(option string, files []string) {
	escaped := slices.Clone(files)
	for i, f := range escaped {
		escaped[i] = strings.ReplaceAll(f, "%", "%%")
	}
	b.add(option, escaped...)
}

// addProxy adds the command that connects ssh, with the flags of this one.
func (b *block) addProxy(host string, opts *options, flags ...string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	words := []string{exe, "ssh-proxy"}
	if opts.Port != 0 {
		words = append(words, "-p", strconv.Itoa(int(opts.Port)))
	}
	if opts.Bootstrap != "" {
		words = append(words, "--bootstrap", opts.Bootstrap)
	}
	if opts.Config != "" {
		words = append(words, "-F", opts.Config)
	}
	for _, file := range opts.Identities {
		words = append(words, "-i", file)
	}
	for i, w := range words {
		words[i] = strings.ReplaceAll(shellWord(w), "%", "%%")
	}
	b.lines = append(b.lines,
		// ssh would give up after a short outage if the user has set this for all hosts.
		"ServerAliveInterval 0",
		"ProxyCommand "+strings.Join(slices.Concat(words, flags, []string{host}), " "))
	return nil
}

// shellWord quotes a word for the user's shell.
func shellWord(s string) string {
	if regexp.MustCompile(`^[\w./:@%+=,-]+$`).MatchString(s) {
		return s
	}
	if runtime.GOOS == "windows" {
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// absolute makes the names of files in the flags absolute.
func (opts *options) absolute() error {
	if opts.Config != "" && opts.Config != "none" {
		file, err := filepath.Abs(opts.Config)
		if err != nil {
			return err
		}
		opts.Config = file
	}
	for i, file := range opts.Identities {
		file, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		opts.Identities[i] = file
	}
	return nil
}

// patternBlock returns the block for all hosts.
func patternBlock(opts *options) (*block, error) {
	if err := opts.absolute(); err != nil {
		return nil, err
	}
	b := &block{[]string{
		"Host *" + proxySuffix,
		"# If the account has another name than yours here, type user@host" + proxySuffix + ".",
		"# qt has authenticated the host when ssh first sees the key of its sshd.",
		"StrictHostKeyChecking accept-new",
	}}
	if opts.User != "" {
		b.add("User", opts.User)
	}
	for _, file := range opts.Identities {
		b.addFiles("IdentityFile", []string{file})
	}
	return b, b.addProxy("%n", opts, "-l", "%r")
}

// hostBlock returns the block for one host.
func hostBlock(ctx context.Context, arg string, opts *options) (*block, error) {
	if err := opts.absolute(); err != nil {
		return nil, err
	}
	login, host, err := reach.ParseTarget(arg, &opts.Options)
	if err != nil {
		return nil, err
	}
	h, err := reach.LoadSSH(ctx, arg, &opts.Options)
	if err != nil {
		return nil, err
	}
	usual, err := reach.LoadSSH(ctx, "host.invalid", &reach.Options{Config: opts.Config})
	if err != nil {
		return nil, err
	}
	b := &block{[]string{"Host " + host + proxySuffix}}
	b.add("HostName", h.Hostname)
	b.add("HostKeyAlias", h.KnownAs)
	b.add("User", h.User)
	if !slices.Equal(h.Identities, usual.Identities) {
		for _, file := range h.Identities {
			b.addFiles("IdentityFile", []string{file})
		}
	}
	for _, file := range h.Certificates {
		private := strings.TrimSuffix(file, "-cert.pub") // ssh looks beside it anyway
		if !slices.Contains(usual.Certificates, file) && !slices.Contains(h.Identities, private) {
			b.addFiles("CertificateFile", []string{file})
		}
	}
	if h.IdentitiesOnly != usual.IdentitiesOnly {
		b.add("IdentitiesOnly", map[bool]string{true: "yes", false: "no"}[h.IdentitiesOnly])
	}
	if h.Agent != usual.Agent {
		b.addFiles("IdentityAgent", []string{h.Agent})
	}
	for _, known := range []struct {
		option       string
		files, usual []string
	}{
		{"UserKnownHostsFile", h.KnownHosts, usual.KnownHosts},
		{"GlobalKnownHostsFile", h.GlobalKnownHosts, usual.GlobalKnownHosts},
	} {
		if !slices.Equal(known.files, known.usual) && len(known.files) > 0 {
			b.addFiles(known.option, known.files)
		}
	}
	if h.Unknown != usual.Unknown {
		b.add("StrictHostKeyChecking", map[sshconfig.Policy]string{
			sshconfig.Ask: "ask", sshconfig.Accept: "accept-new", sshconfig.Refuse: "yes",
		}[h.Unknown])
	}
	var flags []string
	if login != "" {
		flags = []string{"-l", shellWord(login)}
	}
	return b, b.addProxy(host+proxySuffix, opts, flags...)
}
