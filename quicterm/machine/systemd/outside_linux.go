package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/keyring"
)

// firstMounts are the mounts that the service manager of the system sees.
const firstMounts = "/proc/1/ns/mnt"

// Outside returns a function that starts a process with the mounts of the system, if this process is a service whose
// unit gives it others (ProtectSystem=, PrivateTmp=, …), which processes inherit. Else it returns nil.
func Outside() func(*exec.Cmd) error {
	if !isService() {
		return nil // if it has other mounts, its parent means its children to have them too
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return nil
	}
	if first, err := os.Readlink(firstMounts); err != nil || first == own {
		return nil
	}
	return startOutside
}

// isService reports whether the service manager has started this process itself. Before version 248 it
// tells that only by the watchdog of the unit.
func isService() bool {
	pid, ok := os.LookupEnv("SYSTEMD_EXEC_PID")
	if !ok {
		pid = os.Getenv("WATCHDOG_PID")
	}
	return pid == strconv.Itoa(os.Getpid())
}

// startOutside starts a process with the mounts of process 1, and a session keyring of its own.
func startOutside(cmd *exec.Cmd) error {
	return keyring.Do(func() error { // on a thread that ends
		mounts, err := os.Open(firstMounts)
		if err != nil {
			return err
		}
		defer mounts.Close()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("leave the working directory of other threads: %w", err)
		}
		if err := unix.Setns(int(mounts.Fd()), unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("leave the mounts of the unit: %w", err)
		}
		return cmd.Start()
	})
}
