package rig

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
)

// startupFiles are those of shells, in a home directory.
var startupFiles = []string{".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zprofile"}

// startupVariable is set in the process that has them empty.
const startupVariable = "QUICTERM_STARTUP_FILES"

// WithoutStartupFiles runs this program again where root's startup files are empty, with env added
// to its environment: what they print is none of the tests' business, and some wait for each
// other's locks, for longer than Patience. Root has no settings and no enrolled keys there, which a
// test could remove. It returns the exit status, or ok = false if these tests
// can or need not do so, or do so already.
func WithoutStartupFiles(env ...string) (status int, ok bool) {
	if os.Getenv(startupVariable) != "" {
		return 0, false
	}
	// Not $HOME, which may differ from the home directory that sessions have.
	root, err := user.LookupId("0")
	if err != nil || os.Geteuid() != 0 {
		return 0, false
	}
	script := "mount --make-rprivate / || exit 125\n"
	for _, name := range startupFiles {
		if file := filepath.Join(root.HomeDir, name); exists(file) {
			script += "mount --bind /dev/null '" + file + "' || exit 125\n"
		}
	}
	ours := filepath.Join(root.HomeDir, ".config", "quicterm")
	script += "mkdir -p -m 700 '" + ours + "' && mount -t tmpfs -o mode=700 tmpfs '" + ours + "' || exit 125\n"
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	cmd := exec.Command("sh", append([]string{"-c", script + `exec "$0" "$@"`, self}, os.Args[1:]...)...)
	cmd.Env = append(append(os.Environ(), startupVariable+"=empty"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() == 125 {
		return 0, false // this machine lets nobody mount
	}
	return cmd.ProcessState.ExitCode(), true
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
