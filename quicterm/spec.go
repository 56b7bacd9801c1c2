//go:build linux || darwin

package quicterm

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// spec describes a new session to its holder. Its environment is made from
// nothing, as login(1) does, so that it does not depend on who started whom.
func (s *Server) spec(g *guest, req *wire.Attach, name string) (*wire.Spec, error) {
	if err := checkLogins(g.account.UID); err != nil {
		return nil, err
	}
	if req.PTY && g.allowed.NoPTY {
		return nil, &sessionError{wire.CodeFailed, "this key may not have a terminal: use qt connect -T"}
	}
	spec := &wire.Spec{
		Name:        name,
		Scope:       g.scope,
		Base:        string(s.base),
		Software:    s.cfg.Software,
		Path:        g.account.Shell,
		Dir:         g.account.Home,
		PTY:         req.PTY,
		Size:        req.Size,
		Buffer:      int(s.cfg.Settings.BufferSize.Bytes),
		DetachedTTL: s.cfg.Settings.DetachedTTL.Duration,
		ExitedTTL:   s.cfg.Settings.ExitedTTL.Duration,
		PipeTTL:     s.cfg.Settings.PipeTTL.Duration,
	}
	if _, err := rand.Read(spec.ID[:]); err != nil {
		return nil, err
	}
	if len(req.Env) > wire.MaxEnv {
		return nil, &sessionError{wire.CodeFailed, fmt.Sprintf("%d environment variables, at most %d are taken", len(req.Env), wire.MaxEnv)}
	}
	spec.Env = append(spec.Env,
		"HOME="+g.account.Home,
		"USER="+g.account.Name,
		"LOGNAME="+g.account.Name,
		"SHELL="+g.account.Shell,
		"PATH="+defaultPath(g.account.UID),
		"QUICTERM_SESSION="+name,
	)
	spec.Env = append(spec.Env, acceptEnv(s.cfg.Settings.AcceptEnv, req.Env)...)
	command := req.Command
	if g.allowed.Command != "" {
		command = g.allowed.Command
		if req.Command != "" {
			spec.Env = append(spec.Env, "SSH_ORIGINAL_COMMAND="+req.Command)
		}
	}
	shell := filepath.Base(g.account.Shell)
	if command == "" {
		spec.Argv = []string{"-" + shell}
		spec.Command = shell
	} else {
		spec.Argv = []string{shell, "-c", command}
		spec.Command = summary(command)
	}
	return spec, nil
}

// summary returns as much of a command as is listed.
func summary(command string) string {
	n := min(len(command), wire.MaxSummary)
	for n > 0 && n < len(command) && !utf8.RuneStart(command[n]) {
		n--
	}
	return command[:n]
}

// defaultPath is where programs are, as login(1) and sshd have it.
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

// acceptEnv returns the variables that match a pattern, as NAME=value.
func acceptEnv(patterns []string, offered [][2]string) []string {
	var env []string
	for _, v := range offered {
		name, value := v[0], v[1]
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
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

// nologin is the file by which an administrator keeps people out (nologin(5)).
const nologin = "/etc/nologin"

func checkLogins(uid uint32) error {
	if uid == 0 {
		return nil
	}
	why, err := os.ReadFile(nologin)
	if err != nil {
		return nil
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(why), []byte("\n"))
	if len(line) == 0 {
		line = []byte("the server does not accept logins now")
	}
	return &sessionError{wire.CodeFailed, string(line)}
}
