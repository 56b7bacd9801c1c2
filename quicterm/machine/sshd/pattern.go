//go:build linux || darwin

package sshd

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// matchHost matches a client's name or address against the patterns behind an @ (PATTERNS in ssh_config(5)): names,
// addresses and address/length, separated by commas, with ! before those that must not match.
func matchHost(patterns, host string, client netip.Addr) (bool, error) {
	byAddress, err := auth.MatchAddresses(patterns, client)
	if err != nil {
		return false, err
	}
	byName := auth.MatchList(strings.ToLower(patterns), strings.ToLower(host))
	return byAddress >= 0 && byName >= 0 && byAddress+byName > 0, nil
}

// namesHost reports whether a pattern of AllowUsers or DenyUsers is for a user and names of
// hosts, and not for addresses alone.
func namesHost(pattern, user string) bool {
	name, hosts, _ := strings.Cut(pattern, "@")
	return auth.MatchPattern(name, user) && slices.ContainsFunc(strings.Split(hosts, ","), func(host string) bool {
		return !strings.Contains(host, ":") && strings.ContainsFunc(host, unicode.IsLetter)
	})
}
