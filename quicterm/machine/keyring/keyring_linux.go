package keyring

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Start starts a command with a new session keyring, which no other process has.
func Start(cmd *exec.Cmd) error { return Do(cmd.Start) }

// Do calls f on a thread with a new session keyring, and returns its error. The thread ends then: the kernel has a
// keyring for each thread, and a child inherits that of the thread that starts it.
func Do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the first thread cannot end before the process
			defer runtime.UnlockOSThread()
			done <- Do(f)
			return
		}
		// It stays locked, so it ends with the goroutine.
		if err := join(); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// quotaTime is how long join waits for room: the kernel frees the keyrings of processes that have ended in
// milliseconds.
const quotaTime = time.Second

// join gives this thread a new session keyring. Where the kernel has no keys, or a container forbids their use, no
// process has any. An account may have as many keyrings as it may have keys: its own processes share one then. Root of
// a container is such an account, and must not have its processes share one.
func join() error {
	for start := time.Now(); ; time.Sleep(quotaTime / 100) {
		// Without a name: another process cannot join it.
		_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
		switch {
		case err == nil || os.Geteuid() != 0 || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
			return nil
		case !errors.Is(err, unix.EDQUOT):
			return fmt.Errorf("new session keyring: %w", err)
		case time.Since(start) >= quotaTime:
			return fmt.Errorf("new session keyring: %w: each session has one; raise kernel.keys.maxkeys and "+
				"kernel.keys.maxbytes of this machine (sysctl), or root_maxkeys and root_maxbytes outside of containers", err)
		}
	}
}

// Adopt makes the session keyring of this thread, which must be locked, one of the account that this process runs
// as, with the account's own keys in it, as pam_keyinit(8) does. A keyring that the account has already stays. What
// fails leaves the thread with a keyring that no other session has.
func Adopt() {
	description, err := unix.KeyctlString(unix.KEYCTL_DESCRIBE, unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		return
	}
	if fields := strings.Split(description, ";"); len(fields) < 2 || fields[1] != strconv.Itoa(os.Getuid()) {
		unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	}
	unix.KeyctlInt(unix.KEYCTL_LINK, unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
}
