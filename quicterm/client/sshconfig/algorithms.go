package sshconfig

import (
	"path"
	"slices"
	"strings"
)

// keyAlgorithms are those that ssh uses by default for keys. HostKeyAlgorithms and others
// change this list, or replace it.
var keyAlgorithms = []string{
	"ssh-ed25519-cert-v01@openssh.com",
	"ecdsa-sha2-nistp256-cert-v01@openssh.com",
	"ecdsa-sha2-nistp384-cert-v01@openssh.com",
	"ecdsa-sha2-nistp521-cert-v01@openssh.com",
	"sk-ssh-ed25519-cert-v01@openssh.com",
	"sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
	"rsa-sha2-512-cert-v01@openssh.com",
	"rsa-sha2-256-cert-v01@openssh.com",
	"ssh-ed25519",
	"ecdsa-sha2-nistp256",
	"ecdsa-sha2-nistp384",
	"ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com",
	"sk-ecdsa-sha2-nistp256@openssh.com",
	"rsa-sha2-512",
	"rsa-sha2-256",
}

// Algorithms returns the list that an argument stands for: a list of its own, or changes to
// the usual one by + (append), - (remove patterns) or ^ (put first). `ssh -G` prints whole
// lists. An empty argument stands for no list.
func Algorithms(arg string, usual []string) []string {
	if arg == "" {
		return nil
	}
	names := strings.Split(strings.TrimLeft(arg, "+-^"), ",")
	others := func(patterns []string) []string {
		return slices.DeleteFunc(slices.Clone(usual), func(name string) bool {
			return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
		})
	}
	switch arg[0] {
	case '+':
		return append(slices.Clone(usual), names...)
	case '-':
		return others(names)
	case '^':
		return append(names, others(names)...)
	}
	return names
}
