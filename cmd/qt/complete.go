package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/cmd/qt/internal/status"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/sshconfig"
)

// A completer returns the possible values of an argument, given those before it.
type completer func(ctx context.Context, before []string, opts *options) []string

// flagValues are the values of flags that have few.
var flagValues = map[string][]string{
	"bootstrap": {"auto", "ssh", "direct"},
	"escape":    {"none"},
	"predict":   {"adaptive", "always", "never"},
	"replay":    {"screen", "lines=", "raw", "none"},
	"port":      nil,
	"login":     nil,
	"session":   nil,
}

// plain matches values that a shell can be given. Servers choose the names of sessions, and a
// shell may expand what completes: bash runs a command in $(...).
const plain = `^[\pL\pN._/][\pL\pN._/:@%+,=~-]*$`

// complete makes the flags and the arguments of a command complete: each argument by its own
// completer, or as the name of a file if that is nil, and further ones not at all.
func complete(c *cobra.Command, opts *options, completers ...completer) {
	c.ValidArgsFunction = func(c *cobra.Command, before []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(before) >= len(completers) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		completer := completers[len(before)]
		if completer == nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		account := typed[:strings.LastIndexByte(typed, '@')+1]
		plain := regexp.MustCompile(plain)
		var values []string
		for _, value := range completer(c.Context(), before, opts) {
			if strings.HasPrefix(account+value, typed) && plain.MatchString(value) {
				values = append(values, account+value)
			}
		}
		return values, cobra.ShellCompDirectiveNoFileComp
	}
	for name, values := range flagValues {
		if c.Flags().Lookup(name) != nil {
			c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// manySessions are the arguments of a command that takes a host and any number of sessions: as many as a person names.
var manySessions = append([]completer{hostNames}, slices.Repeat([]completer{sessionNames}, 50)...)

// hostNames returns the hosts that ssh's files name.
func hostNames(_ context.Context, _ []string, opts *options) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return []string{"localhost"}
	}
	configs := []string{filepath.Join(home, ".ssh", "config"), "/etc/ssh/ssh_config"}
	known := []string{"/etc/ssh/ssh_known_hosts"}
	if opts.Config != "" {
		configs = []string{opts.Config}
	}
	for _, name := range []string{"known_hosts", "known_hosts2"} {
		known = append(known, filepath.Join(home, ".ssh", name))
	}
	names := append(auth.KnownNames(known), "localhost")
	for _, file := range configs {
		names = append(names, sshconfig.Names(file)...)
	}
	// What ends so reaches a host by ssh through qt: see qt ssh-config.
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, proxySuffix) })
	slices.Sort(names)
	return slices.Compact(names)
}

// keyNames returns what qt revoke takes for a key: all, and the user's public keys.
func keyNames(context.Context, []string, *options) []string {
	home, _ := os.UserHomeDir()
	files, _ := filepath.Glob(filepath.Join(home, ".ssh", "*.pub"))
	return append(files, "all")
}

// sessionNames returns the names of the sessions that clients on this machine have on the host that was typed first. No
// host is asked: qt attach without a session shows a list to choose from.
func sessionNames(_ context.Context, before []string, _ *options) []string {
	reports, _ := status.Ask()
	var names []string
	for _, r := range reports {
		if r.Host == before[0] && !slices.Contains(before[1:], r.Session) {
			names = append(names, r.Session)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
