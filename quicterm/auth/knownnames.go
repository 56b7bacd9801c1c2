package auth

import (
	"bytes"
	"net"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// KnownNames returns the hosts that known_hosts files name, sorted, without their ports. It leaves
// out hashes, patterns, authorities, revoked keys, and files that cannot be read.
func KnownNames(files []string) (names []string) {
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(content) {
			marker, patterns, _, _, _, err := ssh.ParseKnownHosts(line)
			if err != nil || marker != "" {
				continue
			}
			for _, name := range patterns {
				if host, _, err := net.SplitHostPort(name); err == nil && strings.HasPrefix(name, "[") {
					name = host
				}
				if !strings.ContainsAny(name, "|*?!") {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
