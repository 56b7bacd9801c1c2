//go:build linux || darwin

package monitor

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxWatchers bounds the clients of a session beside its writer, which share, watch or peek: an audience.
const maxWatchers = 50

// launch describes a new session to its holder. The environment of the program is made
// from scratch, as login(1) does: it does not depend on who started the daemon.
func (c *client) launch(req *privsep.Attach, name string) (*wire.Launch, error) {
	if req.PTY && c.NoPTY {
		return nil, &wire.Error{Code: wire.CodeFailed, Text: "this key may not have a terminal: use qt connect -T"}
	}
	if len(req.Env) > wire.MaxEnv {
		return nil, errorf(wire.CodeFailed,
			"%d environment variables, at most %d are accepted: see send_env", len(req.Env), wire.MaxEnv)
	}
	size := 0
	for _, v := range req.Env {
		size += len(v[0]) + len("=") + len(v[1])
	}
	if size > wire.MaxEnvBytes {
		return nil, errorf(wire.CodeFailed,
			"%d bytes of environment variables, at most %d are accepted: see send_env", size, wire.MaxEnvBytes)
	}
	settings := c.server.settings()
	for _, v := range req.Env[max(len(req.Env)-int(req.Required), 0):] {
		if len(acceptEnv(settings.AcceptEnv, [][2]string{v})) == 0 {
			return nil, errorf(wire.CodeFailed, "the server does not accept the variable %s: see accept_env", v[0])
		}
	}
	if req.Dir != "" && c.allowed.Command != "" {
		return nil, errorf(wire.CodeFailed, "this key runs one command, in the home directory: leave out --cwd")
	}
	launch := &wire.Launch{
		Name:        name,
		Scope:       c.Scope,
		Instance:    c.instance,
		Path:        c.account.Shell,
		Dir:         c.account.Home,
		Start:       req.Dir,
		PTY:         req.PTY,
		Size:        req.Size,
		MaxWatchers: maxWatchers,
		Buffer:      int(settings.BufferSize.Bytes),
		DetachedTTL: settings.DetachedTTL.Duration,
		ExitedTTL:   exitedTTL,
		PipeTTL:     pipeTTL,
		Agent:       req.Agent && c.allowed.Forwards().Agent() == nil,
	}
	if launch.PTY {
		launch.Persist = c.persist(wire.PersistKeep)
	}
	rand.Read(launch.ID[:])
	from, at := unmapped(c.path.Client), unmapped(c.path.Server)
	launch.Env = acceptEnv(settings.AcceptEnv, req.Env)
	launch.Env = append(launch.Env, // the last value of a variable counts
		"HOME="+c.account.Home,
		"USER="+c.account.Name,
		"LOGNAME="+c.account.Name,
		"SHELL="+c.account.Shell,
		"PATH="+defaultPath(c.account.UID),
		"QUICTERM_SESSION="+name,
		"QUICTERM_BIN="+binDir(),
	)
	if from.IsValid() {
		launch.Env = append(launch.Env,
			fmt.Sprintf("SSH_CLIENT=%v %d %d", from.Addr(), from.Port(), at.Port()),
			fmt.Sprintf("SSH_CONNECTION=%v %d %v %d", from.Addr(), from.Port(), at.Addr(), at.Port()))
	}
	command := req.Command
	if c.allowed.Command != "" {
		command = c.allowed.Command
		if req.Command != "" {
			launch.Env = append(launch.Env, "SSH_ORIGINAL_COMMAND="+req.Command)
		}
	}
	if c.allowed.OnlyFiles() && req.Side == 0 {
		return nil, errorf(wire.CodeFailed, "this login may only move files: use qt cp")
	}
	if req.Side != 0 {
		return launch, c.launchSide(launch, req.Side)
	}
	if c.allowed.Command == "" && len(req.Terminfo) <= wire.MaxTerminfo {
		launch.Terminfo = req.Terminfo // which the account's own process reads
	}
	shell := filepath.Base(c.account.Shell)
	if command == "" {
		launch.Argv = []string{"-" + shell} // a login shell
		launch.Command = shell
	} else {
		launch.Argv = []string{shell, "-c", command}
		launch.Command = summary(command)
	}
	for _, text := range slices.Concat(launch.Argv, launch.Env, []string{launch.Start}) {
		if strings.Contains(text, "\x00") { // a program would see two
			return nil, errorf(wire.CodeFailed,
				"a command, a variable or a directory has a zero byte, which no program can be given")
		}
	}
	return launch, nil
}

// binDir returns the directory of this program, where qt ssh-config looks for it last.
func binDir() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Dir(exe)
}

// summary returns the start of a command, at most wire.MaxSummary bytes.
func summary(command string) string {
	n := min(len(command), wire.MaxSummary)
	for n > 0 && n < len(command) && !utf8.RuneStart(command[n]) {
		n--
	}
	return command[:n]
}

// defaultPath returns the value of PATH that login(1) and sshd set.
func defaultPath(uid uint32) string {
	const usual = "/usr/local/bin:/usr/bin:/bin"
	switch {
	case runtime.GOOS == "darwin":
		return usual + ":/usr/sbin:/sbin:/opt/homebrew/bin"
	case uid == 0:
		return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return usual + ":/usr/local/games:/usr/games"
}

// unmapped returns an address as sshd shows it: an IPv4 address that was received on an IPv6
// socket is one of IPv4.
func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// acceptEnv returns the variables whose names match a pattern, as NAME=value. It leaves out
// the names that belong to the daemon: it may have a reason not to set one.
func acceptEnv(patterns []string, offered [][2]string) []string {
	var env []string
	for _, v := range offered {
		name, value := v[0], v[1]
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") ||
			strings.HasPrefix(name, "SSH_") || strings.HasPrefix(name, "QUICTERM_") {
			continue
		}
		for _, pattern := range patterns {
			if ok, _ := path.Match(pattern, name); ok {
				env = append(env, name+"="+value)
				break
			}
		}
	}
	return env
}

// nologin refuses all accounts but root while logins are forbidden: by nologin(5) or, of a daemon of
// all accounts, by the file that the system makes while it starts and stops (pam_nologin(8)).
// The client is told the first line of the file.
func nologin(all bool, uid uint32) *wire.Error {
	files := []string{"/etc/nologin"}
	if all {
		files = append(files, "/run/nologin")
	}
	if uid == 0 {
		return nil
	}
	for _, file := range files {
		reason, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		line, _, _ := bytes.Cut(bytes.TrimSpace(reason), []byte("\n"))
		if len(line) == 0 {
			line = fmt.Appendf(nil, "the server does not accept logins now (%s)", file)
		}
		return &wire.Error{Code: wire.CodeFailed, Text: string(line[:min(len(line), wire.MaxSummary)])}
	}
	return nil
}
