package pam

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/confine"
)

// self is the program of a process, also if its file was removed.
const self = "/proc/self/exe"

// OpenArgs returns the arguments of a process of root that opens a session for an account by su, and
// then becomes a holder with the arguments hold. A nil credential means that it keeps its rights.
func OpenArgs(su, name string, credential *syscall.Credential, hold []string) []string {
	rights, err := json.Marshal(credential)
	if err != nil {
		panic(err) // of numbers only
	}
	return append([]string{OpenCommand, su, name, string(rights)}, hold...)
}

// Open does what OpenArgs says. It waits until standard input can be read, of which it reads nothing:
// then the daemon has put the process where it belongs. The holder inherits the descriptors kept, as far as
// this process did, and the session does not. It returns only on errors.
func Open(args []string, kept ...int) error {
	if len(args) < 4 {
		return errors.New("no session to open")
	}
	su, name, rights, hold := args[0], args[1], args[2], args[3:]
	if name == "-" {
		return errors.New("su has another meaning for the name -")
	}
	kept = slices.DeleteFunc(kept, func(fd int) bool {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		return err != nil || flags&unix.FD_CLOEXEC != 0 // then it is not inherited
	})
	for _, fd := range kept {
		unix.CloseOnExec(fd)
	}
	credential, err := parseCredential(rights)
	if err != nil {
		return err
	}
	if err := awaitInput(); err != nil {
		return err
	}
	// What starts from here gets these signals even if the daemon ignored them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	syscall.Umask(0o022)
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := os.Stat(exe); err != nil {
		exe = self
	}
	uid := uint32(os.Getuid())
	if credential != nil {
		uid = credential.Uid
	}
	// It is for the audit log and last(1) only, and may be immutable. Each thread has one of its own: su inherits that
	// of the thread that starts it, and the holder that of the thread that becomes it.
	runtime.LockOSThread()
	os.WriteFile("/proc/thread-self/loginuid", []byte(strconv.FormatUint(uint64(uid), 10)), 0)
	session, err := startSu(su, name, exe)
	if err != nil {
		return fmt.Errorf("open a session by %s: %w", su, err)
	}
	if credential != nil {
		if err := confine.Become(credential); err != nil {
			return err
		}
	}
	for _, fd := range kept {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	return syscall.Exec(exe, append(append([]string{"qtd"}, hold...), SessionFlag+"="+session), []string{})
}

// awaitInput blocks until the daemon has written to standard input.
func awaitInput() error {
	for {
		in := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
		_, err := unix.Poll(in, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case in[0].Revents&unix.POLLIN != 0:
			return nil
		default:
			return errors.New("the daemon is gone")
		}
	}
}

// sessionForm is the form of what a holder needs to know of a session: see startSu.
const sessionForm = "%d,%d,%d"

// startSu starts su as a child of this process, and returns what a holder needs to know of it: its
// process id, and the descriptors of the socket to [Run] and of what su prints.
func startSu(su, name, exe string) (session string, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", os.NewSyscallError("socketpair", err)
	}
	inner := os.NewFile(uintptr(ends[1]), "inner end")
	defer inner.Close()
	// A pipe would block su when nobody reads it, or end it.
	memory, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		return "", os.NewSyscallError("memfd_create", err)
	}
	words := os.NewFile(uintptr(memory), "words")
	files := []*os.File{inner}
	if exe == self { // su would find itself there
		program, err := os.Open(self)
		if err != nil {
			return "", err
		}
		defer program.Close()
		exe, files = fmt.Sprintf("/proc/self/fd/%d", programFD), append(files, program)
	}
	cmd := exec.Command(su, "-s", exe, "--", name, RunCommand)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdout, cmd.Stderr = words, words
	cmd.ExtraFiles = files
	if err := cmd.Start(); err != nil {
		return "", err
	}
	for _, fd := range []*int{&ends[0], &memory} { // without close-on-exec
		if *fd, err = unix.FcntlInt(uintptr(*fd), unix.F_DUPFD, 0); err != nil {
			return "", os.NewSyscallError("dup", err)
		}
	}
	return fmt.Sprintf(sessionForm, cmd.Process.Pid, ends[0], memory), nil
}

// parseCredential parses what OpenArgs has made of a credential.
func parseCredential(rights string) (c *syscall.Credential, err error) {
	err = json.Unmarshal([]byte(rights), &c)
	if err == nil && c != nil && c.Uid == 0 {
		err = fmt.Errorf("%q are no rights of an account", rights)
	}
	return c, err
}
