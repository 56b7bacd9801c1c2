//go:build linux || darwin

package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/keyring"
	"github.com/quicterm/quicterm/quicterm/machine/memory"
)

// Sources are where the keys of an account come from. All that is in them, and in what they name,
// is parsed by the child.
type Sources struct {
	Files        []string     // authorized_keys
	Authorities  *Authorities // nil for none
	CAAlgorithms string       // by which authorities may sign, as patterns; empty for all that are secure
	Principals   string       // file; without one, certificates of authorities name the account
	Lax          bool         // files count although others may write to them
	Program      *Program     // nil for none; it is asked alone, without files
	Enrolled     string       // directory of enrolled keys, which count if the account may add keys to Files; empty for none
	Check        bool         // of a client that is logged in: it is read apart from those that log in, who may be many
}

func (s *Sources) empty() bool { return len(s.Files) == 0 && s.Authorities == nil && s.Program == nil }

// Authorities are the keys that sign the certificates of users: one a line.
type Authorities struct {
	Name string // of the file, for people
	Keys []byte
}

// A Program prints lines of authorized_keys.
type Program struct {
	Argv    []string // the first is its path
	Account *account.Account
}

// Output is the descriptor at which a child has the output of a program, or the null device.
const Output = 3

// readProgram reads the output of the program that the daemon has started for this child.
func readProgram() ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(os.NewFile(Output, "output"), maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("the program prints more than %d bytes", maxFile)
	}
	return content, err
}

// CheckProgram refuses a program that another account than root may change: as sshd's
// AuthorizedKeysCommand, its path is absolute, and it and all directories above belong to root.
func CheckProgram(name string) error {
	if !filepath.IsAbs(name) {
		return fmt.Errorf("%s: not an absolute path", name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	return checkUp(real, "/", 0, false)
}

// A running is a program that was started.
type running struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed when err is set
	err    error
}

// run starts a program with the rights of an account, and returns the end of the pipe to which it
// prints. Without a program that is the null device. The caller closes it, and calls end.
func run(ctx context.Context, program *Program, as *syscall.Credential) (*os.File, *running, error) {
	if program == nil {
		null, err := os.Open(os.DevNull)
		return null, nil, err
	}
	if err := CheckProgram(program.Argv[0]); err != nil {
		return nil, nil, err
	}
	output, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer stdout.Close()
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program.Argv[0], program.Argv[1:]...)
	cmd.Env = []string{
		"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + program.Account.Home,
		"USER=" + program.Account.Name, "LOGNAME=" + program.Account.Name,
	}
	cmd.Dir = "/"
	cmd.Stdout = stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: as}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := keyring.Start(cmd); err != nil {
		cancel()
		return nil, nil, errors.Join(err, output.Close())
	}
	memory.Unprotect(cmd.Process.Pid) // it may have ended
	r := &running{cancel: cancel, ended: make(chan struct{})}
	go func() { // for as long as the process exists: its file system may keep it
		r.err = cmd.Wait()
		close(r.ended)
	}()
	return output, r, nil
}

// endTime is how long a program may run after it has closed its output.
const endTime = 5 * slowTime

// ErrProgram is the error of a program that ends with another exit status than 0: it allows no key,
// whatever it has printed.
var ErrProgram = errors.New("the program has failed")

// wait returns why a program has not ended well, or nil. Only ErrProgram says something about the keys.
func (r *running) wait(ctx context.Context) error {
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endTime, errors.New("the program does not end"))
	defer cancel()
	select {
	case <-r.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(r.err, &exit) && exit.Exited() {
		return fmt.Errorf("%w: %w", ErrProgram, r.err)
	}
	if r.err != nil {
		return fmt.Errorf("the program did not end by itself: %w", r.err)
	}
	return nil
}

// end kills a program that still runs, and all processes of its session that are in its group.
func (r *running) end() {
	if r != nil {
		r.cancel()
	}
}
