package pam

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// patience bounds how long su may take to answer.
const patience = 10 * time.Second

// maxWords bounds what is shown of su's words, in bytes.
const maxWords = 300

// Find returns the path of su, or an error that says why sessions cannot be opened by it. It tries that
// with root's own account. start starts a process; nil means the command's own Start.
func Find(ctx context.Context, start func(*exec.Cmd) error) (su string, err error) {
	if os.Geteuid() != 0 {
		return "", errors.New("only root can open sessions of PAM")
	}
	// The program would get the context of the daemon, or none.
	if enforce, err := os.ReadFile("/sys/fs/selinux/enforce"); err == nil && string(enforce) == "1" {
		return "", errors.New("SELinux is enforcing: su gives a program the context of the daemon")
	}
	for _, path := range []string{"/usr/bin/su", "/bin/su"} {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
			return "", fmt.Errorf("%s belongs to or can be changed by others than root", path)
		}
		su = path
		break
	}
	if su == "" {
		return "", errors.New("there is no su")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	words, err := run(ctx, start, su, "--version")
	if err != nil || !strings.Contains(words, "util-linux") {
		return "", fmt.Errorf("%s is not that of util-linux", su)
	}
	if words, err = run(ctx, start, su, "-s", "/bin/sh", "--", "root", "-c", ":"); err != nil {
		return "", fmt.Errorf("%s does not work (%w): %s", su, err, words)
	}
	return su, nil
}

// run runs a program without environment and input, and returns what it prints.
func run(ctx context.Context, start func(*exec.Cmd) error, path string, args ...string) (words string, err error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal to ask at
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err = start(cmd); err == nil {
		err = cmd.Wait()
	}
	return brief(out.Bytes()), err
}

// brief returns the beginning of some text as one line.
func brief(b []byte) string {
	return strings.Join(strings.Fields(string(b[:min(len(b), maxWords)])), " ")
}
