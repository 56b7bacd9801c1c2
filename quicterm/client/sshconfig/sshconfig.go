// Package sshconfig reads what ssh's configuration says about a host (ssh_config(5)).
//
// The ssh program reads it: `ssh -G` knows every option, Match and Include. Where there is no
// ssh, a library reads the user's file, which knows less: it rejects a file with Match exec,
// originalhost or final. docs/ssh_config.md lists what becomes of each option.
package sshconfig

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
	bySSH := true
	values, err := ask(ctx, q)
	if errors.Is(err, exec.ErrNotFound) {
		bySSH = false
		values, err = read(q)
	}
	if err != nil {
		return nil, err
	}
	return newHost(q, values, me, bySSH)
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

// read reads the user's file on a machine without ssh.
func read(q Query) (values, error) {
	file := q.File
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		file = filepath.Join(home, ".ssh", "config")
	}
	v := make(values)
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) && q.File == "" {
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	config, err := ssh_config.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, key := range Options {
		found, err := config.GetAll(q.Host, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(found) > 0 {
			v[key] = found
		}
	}
	return v, nil
}
