package main

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// A daemon that serves one account has a host key of its own, which no known_hosts file lists.
// Its grants bring the key by ssh. qt keeps such keys in a file of its own, in the format of
// known_hosts: the daemon's port may be another account's tomorrow, and then another key there is
// no reason for an alarm, but only to go by ssh again. A key counts for the account whose grant
// has brought it: another account's login proves nothing of who listens at a port.

// maxDaemonKeys bounds how many keys are kept: as many as servers (see maxReached).
const maxDaemonKeys = maxReached

func daemonKeysFile() (string, error) { return stateFile("known_daemons") }

// daemonName names the target's account and host in that file.
func daemonName(t *target) string { return strings.ToLower(t.User + "@" + t.Alias) }

// knownDaemon returns nil if a connection by ssh has brought the key of the daemon at the
// target's port, else why it is not trusted.
func knownDaemon(t *target, key ssh.PublicKey) error {
	name, err := daemonKeysFile()
	if err != nil {
		return err
	}
	known, err := auth.LoadKnownHosts(daemonName(t), t.daemonPort, []string{name})
	if err != nil {
		return err
	}
	return known.Check(key)
}

// keepDaemonKey keeps the key of the daemon at the target's port in place of an earlier one.
func keepDaemonKey(t *target, key ssh.PublicKey) error {
	name, err := daemonKeysFile()
	if err != nil {
		return err
	}
	host := knownhosts.Normalize(fmt.Sprintf("[%s]:%d", daemonName(t), t.daemonPort))
	return changeState(name, func(content []byte) ([]byte, error) {
		var lines [][]byte
		for line := range bytes.Lines(content) {
			if first, _, ok := bytes.Cut(line, []byte(" ")); ok && string(first) != host {
				lines = append(lines, line)
			}
		}
		lines = append(lines, []byte(host+" "+string(ssh.MarshalAuthorizedKey(key))))
		return bytes.Join(lines[max(len(lines)-maxDaemonKeys, 0):], nil), nil
	})
}
