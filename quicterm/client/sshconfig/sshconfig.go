// Package sshconfig reads what ssh's configuration says about a host (ssh_config(5)).
//
// The ssh program reads it: `ssh -G` knows every option, Match and Include. On a machine without
// ssh, its defaults hold. docs/ssh_config.md lists what becomes of each option.
package sshconfig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strings"
)

// A Query says what to read.
type Query struct {
	Host       string // as the user typed it
	User       string // or empty: the configuration names the user
	File       string // to read instead of ssh's own files, or empty
	Identities []string
}

// Load returns what the configuration says about a host. Identities of the query come
// before those of the configuration, and instead of ssh's default ones.
func Load(ctx context.Context, q Query) (*Host, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	values, err := ask(ctx, q)
	if errors.Is(err, exec.ErrNotFound) {
		if q.File != "" {
			return nil, fmt.Errorf("there is no ssh on this machine to read %s", q.File)
		}
		return newHost(q, nil, me)
	}
	if err != nil {
		return nil, err
	}
	return newHost(q, values, me)
}

// ask asks the ssh program.
func ask(ctx context.Context, q Query) (values, error) {
	args := []string{"-G"}
	if q.User != "" {
		args = append(args, "-l", q.User)
	}
	if q.File != "" {
		args = append(args, "-F", q.File)
	}
	for _, file := range q.Identities { // so that ssh leaves its default files out
		args = append(args, "-i", file)
	}
	cmd := exec.CommandContext(ctx, "ssh", append(args, "--", q.Host)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return nil, fmt.Errorf("ssh rejects its configuration for %s: %s", q.Host, line)
	}
	v := make(values)
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), " "); ok {
			key = strings.ToLower(key)
			v[key] = append(v[key], value)
		}
	}
	return v, lines.Err()
}
