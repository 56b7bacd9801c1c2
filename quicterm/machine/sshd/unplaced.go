//go:build linux || darwin

package sshd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/quicterm/machine/command"
)

// unplaced stands for the address of a client that has none, as one that a hub relays, where sshd wants one.
var unplaced = netip.IPv6Unspecified()

// placing are what a Match block may depend on that only a connection with addresses has.
var placing = []string{"address", "host", "localaddress", "localport", "rdomain"}

// checkUnplaced returns why a client without an address does not get in: sshd's configuration has a Match block that
// depends on one, wherever it is, or that cannot be told. In its debug output, sshd names each block that it reads.
func (d *Daemon) checkUnplaced(ctx context.Context, sshd *Installation, user string) error {
	login := fmt.Sprintf("user=%s,host=%v,addr=%v,laddr=%v,lport=22", user, unplaced, unplaced, unplaced)
	args := append([]string{"-G", "-ddd", "-T", "-C", login}, sshd.Options...)
	var trace []byte
	err := errors.ErrUnsupported
	if !d.old.Load() {
		_, trace, err = command.Run(ctx, nil, sshd.File, args...)
	}
	if err != nil && ctx.Err() == nil {
		_, trace, err = command.Run(ctx, nil, sshd.File, args[1:]...)
	}
	if err != nil {
		return fmt.Errorf("sshd's configuration is not known: %w", err)
	}
	block, read := placedBlock(string(trace))
	switch {
	case block != "":
		return fmt.Errorf("%w: a client without an address, and sshd has rules about them: %.100q", ErrRefused, block)
	case !read:
		return fmt.Errorf("%w: a client without an address, and sshd does not tell whether it has rules about them", ErrRefused)
	}
	return nil
}

// placedBlock returns a Match block that depends on addresses, of those in the debug output of sshd, or nothing, and
// whether the output tells that the configuration was read.
func placedBlock(trace string) (block string, read bool) {
	for line := range strings.Lines(trace) {
		read = read || strings.Contains(line, "load_server_config: done")
		_, rest, ok := strings.Cut(line, "checking ")
		if !ok {
			continue
		}
		_, conditions, ok := strings.Cut(rest, "for '")
		if !ok {
			continue
		}
		conditions, _, _ = strings.Cut(conditions, "' user ")
		words := strings.FieldsFunc(strings.ToLower(conditions), func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"'", r) })
		if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(placing, w) }) {
			return strings.TrimSpace(conditions), true
		}
	}
	return "", read
}
