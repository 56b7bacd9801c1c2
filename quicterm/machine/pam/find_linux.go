package pam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/machine/command"
)

// patience bounds how long su may take to answer.
const patience = command.Patience

// maxWords bounds what is shown of su's words, in bytes.
const maxWords = 300

// Find returns the path of su, or an error that says why sessions cannot be opened by it: [Absent], [Unusable],
// or another one that may pass by itself. It tries su with root's own account. start starts a process; nil means the
// command's own Start.
func Find(ctx context.Context, start func(*exec.Cmd) error) (su string, err error) {
	if os.Geteuid() != 0 {
		return "", Unusable("only root can open sessions of PAM")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The program would get the context of the daemon, or none.
	if enforce, err := os.ReadFile("/sys/fs/selinux/enforce"); err == nil && string(enforce) == "1" {
		return "", Absent("SELinux is enforcing: su gives a program the context of the daemon")
	}
	for _, path := range []string{"/usr/bin/su", "/bin/su"} {
		if exists, err := isRoots(path); err != nil {
			return "", err
		} else if exists {
			su = path
			break
		}
	}
	if su == "" {
		return "", Absent("there is no su")
	}
	words, err := run(ctx, start, su, "--version")
	switch {
	case err != nil && !hasFailed(err):
		return "", fmt.Errorf("%s could not be tried: %w", su, err)
	case (err != nil || !strings.Contains(words, "util-linux")) && !hasRules():
		return "", Absent(su + " is not that of util-linux, and PAM has no rules for it")
	case err != nil || !strings.Contains(words, "util-linux"):
		return "", Unusable(su + " is not that of util-linux")
	}
	return su, try(ctx, start, su, "-s", "/bin/sh", "--", "root", "-c", ":")
}

func hasRules() bool {
	for _, file := range []string{"/etc/pam.d/su", "/usr/lib/pam.d/su", "/etc/pam.conf"} {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// try returns an error if a program cannot open a session for root.
func try(ctx context.Context, start func(*exec.Cmd) error, path string, args ...string) error {
	words, err := run(ctx, start, path, args...)
	switch {
	case err != nil && !hasFailed(err):
		return fmt.Errorf("%s could not be tried: %w", path, err)
	case err != nil:
		return Unusable(fmt.Sprintf("%s does not work (%v): %s", path, err, words))
	}
	return nil
}

// Check returns an error if PAM refuses a session of an account. It opens one by su, as Find has returned it,
// and closes it: nothing runs in it.
func Check(ctx context.Context, su, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	words, err := run(ctx, nil, su, "-s", "/bin/true", "--", name)
	if err != nil {
		return refusal(cmp.Or(words, err.Error()))
	}
	return nil
}

func refusal(words string) error {
	return fmt.Errorf("PAM refuses the session: %s", strings.TrimPrefix(words, "su: "))
}

// hasFailed reports whether a program has ended with a status of its own. It has not if it could not be
// started, and if a signal has ended it or its child, as at the end of its time.
func hasFailed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() > 0 && exit.ExitCode() <= 128
}

// isRoots reports whether a program exists. The error says that others than root can change it.
func isRoots(path string) (exists bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, nil
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
		return false, Unusable(path + " belongs to or can be changed by others than root")
	}
	return true, nil
}

// run runs a program, and returns what it prints as one line.
func run(ctx context.Context, start func(*exec.Cmd) error, path string, args ...string) (words string, err error) {
	out, complaint, err := command.Run(ctx, start, path, args...)
	return brief(append(out, complaint...)), err
}

// brief returns the beginning of some text as one line.
func brief(b []byte) string {
	return strings.Join(strings.Fields(string(b[:min(len(b), maxWords)])), " ")
}
