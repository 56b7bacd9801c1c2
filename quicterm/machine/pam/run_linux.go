package pam

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/keyring"
)

// innerFD is the descriptor of the socket to the holder, which su passes on.
const innerFD = 3

// programFD is the descriptor of the daemon's executable, which su passes on if that file was removed.
const programFD = 4

// maxProgram bounds a request to run a program, in bytes: a message of the daemon is less, and the
// kernel allows a program as much.
const maxProgram = 2 << 20

// Run is the main function of what su starts: it has the account's rights. It tells the holder that the
// session is open, by its user id, and becomes the program that the holder asks for. It returns if that
// fails, or if the holder has ended.
func Run() error {
	unix.CloseOnExec(innerFD)
	unix.CloseOnExec(programFD)
	socket := os.NewFile(innerFD, "holder")
	if err := binary.Write(socket, binary.BigEndian, uint32(os.Getuid())); err != nil {
		return err
	}
	body, files, err := receive(socket)
	if err != nil {
		return err
	}
	if len(files) < 2 {
		return errors.New("request without files")
	}
	report := files[len(files)-1]
	p, err := parseProgram(body)
	if err == nil {
		err = p.become(files[:len(files)-1], report)
	}
	fmt.Fprint(report, err)
	return err
}

func receive(socket *os.File) (body []byte, files []*os.File, err error) {
	header, control := make([]byte, 4), make([]byte, unix.CmsgSpace(4*4))
	n, controls, flags, _, err := unix.Recvmsg(int(socket.Fd()), header, control, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	switch {
	case err != nil:
		return nil, nil, os.NewSyscallError("recvmsg", err)
	case n < len(header):
		return nil, nil, io.EOF
	case flags&unix.MSG_CTRUNC != 0:
		return nil, nil, errors.New("too many files")
	}
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	if err != nil {
		return nil, nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	size := binary.BigEndian.Uint32(header)
	if size > maxProgram {
		return nil, nil, fmt.Errorf("request of %d bytes", size)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(socket, body)
	return body, files, err
}

// append appends a program to b: strings that end in a zero byte. One with such a byte in it, which would become two,
// is an error.
func (p *Program) append(b []byte) ([]byte, error) {
	fields := []string{p.Path, p.Dir, strconv.FormatBool(p.Terminal), strconv.Itoa(len(p.Argv))}
	for _, field := range slices.Concat(fields, p.Argv, p.Env) {
		if strings.Contains(field, "\x00") {
			return nil, fmt.Errorf("%.40q has a zero byte", field)
		}
		b = append(append(b, field...), 0)
	}
	return b, nil
}

func parseProgram(b []byte) (*Program, error) {
	malformed := errors.New("malformed request")
	if !bytes.HasSuffix(b, []byte{0}) {
		return nil, malformed
	}
	f := strings.Split(string(b[:len(b)-1]), "\x00")
	if len(f) < 5 {
		return nil, malformed
	}
	terminal, err := strconv.ParseBool(f[2])
	count, countErr := strconv.Atoi(f[3])
	if err != nil || countErr != nil || count < 1 || count > len(f)-4 {
		return nil, malformed
	}
	return &Program{Path: f[0], Dir: f[1], Terminal: terminal, Argv: f[4 : 4+count], Env: f[4+count:]}, nil
}

// become makes this process the program, with its standard files: three, or a terminal. Just before, it
// writes its process id to report, which the program does not get. It returns only on errors.
func (p *Program) become(files []*os.File, report *os.File) error {
	if _, err := unix.Setsid(); err != nil {
		return os.NewSyscallError("setsid", err)
	}
	for fd := range 3 {
		if err := unix.Dup3(int(files[min(fd, len(files)-1)].Fd()), fd, 0); err != nil {
			return os.NewSyscallError("dup", err)
		}
	}
	if p.Terminal {
		if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, 0); err != nil {
			return os.NewSyscallError("set controlling terminal", err)
		}
	}
	if os.Chdir(p.Dir) != nil {
		if err := os.Chdir("/"); err != nil {
			return err
		}
	}
	env := merge(p.Env, os.Environ())
	if err := binary.Write(report, binary.BigEndian, uint32(os.Getpid())); err != nil {
		return err
	}
	runtime.LockOSThread() // what this thread has, the program inherits
	keyring.Adopt()
	return syscall.Exec(p.Path, p.Argv, env)
}

// own are the variables that are the session's own, whatever PAM says, and those that su and shells
// set for themselves.
var own = []string{"HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "SHLVL", "_"}

// merge returns an environment in which what PAM has set takes the place of the session's, as in sshd.
func merge(session, pam []string) []string {
	env := make(map[string]string)
	for _, v := range session {
		name, _, _ := strings.Cut(v, "=")
		env[name] = v
	}
	for _, v := range pam {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains(own, name) || strings.HasPrefix(name, "SSH_") || strings.HasPrefix(name, "QUICTERM_") ||
			strings.HasPrefix(name, "LD_") {
			continue
		}
		env[name] = v
	}
	merged := make([]string, 0, len(env))
	for _, v := range env {
		merged = append(merged, v)
	}
	slices.Sort(merged)
	return merged
}
