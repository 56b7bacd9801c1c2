package pam

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxPrinted bounds what is read of what su prints, in bytes.
const maxPrinted = 64 << 10

// runTime bounds how long the process in the session may take to become the program if there is less time left.
const runTime = patience / 5

// A Session is one that su has opened, or opens now, for the account of this process.
type Session struct {
	su     *os.Process
	socket *net.UnixConn // to Run
	words  *os.File      // what su prints
	log    *slog.Logger
	until  time.Time        // when the program must have started
	ended  chan struct{}    // closed when su has ended
	state  *os.ProcessState // when ended is closed; nil if it was reaped elsewhere
	over   chan struct{}    // closed when the program has ended
	limit  time.Duration    // patience, but in tests
}

// Adopt takes over the session that a value of SessionFlag names. It starts a goroutine that ends with su.
func Adopt(value string, log *slog.Logger) (*Session, error) {
	var pid, conversation, printed int
	n, err := fmt.Sscanf(value, sessionForm, &pid, &conversation, &printed)
	same := fmt.Sprintf(sessionForm, pid, conversation, printed) == value
	if err != nil || n != 3 || !same || min(pid, conversation, printed) < 3 {
		return nil, fmt.Errorf("%q is no session", value)
	}
	su, err := os.FindProcess(pid)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(conversation)
	unix.CloseOnExec(printed)
	file := os.NewFile(uintptr(conversation), "session")
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("the session has no socket")
	}
	s := &Session{
		su: su, socket: socket, words: os.NewFile(uintptr(printed), "words"), log: log,
		ended: make(chan struct{}), over: make(chan struct{}), limit: patience,
	}
	go func() {
		defer close(s.ended)
		s.state, _ = su.Wait()
	}()
	return s, nil
}

// Await blocks until PAM has opened the session, at most until then. The error tells what PAM said, if it
// refuses. A program that is started before that time must run by then, or within runTime.
func (s *Session) Await(until time.Time) error {
	s.until = until
	s.socket.SetReadDeadline(until)
	returned := make(chan struct{})
	defer close(returned)
	go func() {
		select {
		case <-s.ended: // what it has left behind may have the socket open
			s.socket.SetReadDeadline(time.Now())
		case <-returned:
		}
	}()
	var uid [4]byte
	_, err := io.ReadFull(s.socket, uid[:])
	if got := binary.BigEndian.Uint32(uid[:]); err == nil && int(got) != os.Getuid() {
		s.Close()
		return fmt.Errorf("PAM has opened a session for user id %d in place of %d", got, os.Getuid())
	}
	if err == nil {
		return nil
	}
	select {
	case <-s.ended:
	case <-time.After(time.Until(until)):
		return errors.New("PAM has not opened a session in time")
	}
	words := make([]byte, maxWords)
	n, _ := s.words.ReadAt(words, 0)
	return refusal(brief(words[:n]))
}

// Start makes a program run in the session, with three standard files or with a terminal, and returns
// its process id. It can be called once. It blocks until the program runs.
func (s *Session) Start(p *Program, files ...*os.File) (pid int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	defer s.Close()
	err = s.send(p, append(files, w))
	w.Close()
	if err != nil {
		return 0, fmt.Errorf("the session is over: %w", err)
	}
	limit := patience
	if left := time.Until(s.until); left > 0 { // else it is that of a lost session, which waited for an answer
		limit = max(left, runTime)
	}
	r.SetReadDeadline(time.Now().Add(limit))
	answer, err := io.ReadAll(io.LimitReader(r, 4+maxWords))
	switch {
	case err != nil:
		return 0, err
	case len(answer) > 4:
		return 0, errors.New(brief(answer[4:]))
	case len(answer) < 4:
		return 0, errors.New("the process in the session has ended")
	}
	pid = int(binary.BigEndian.Uint32(answer))
	go s.awaitEnd(pid)
	return pid, nil
}

func (s *Session) send(p *Program, files []*os.File) error {
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	body, err := p.append(nil)
	if err != nil {
		return err
	}
	header := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err := s.socket.WriteMsgUnix(header, unix.UnixRights(fds...), nil); err != nil {
		return err
	}
	_, err = s.socket.Write(body)
	return err
}

// awaitEnd closes over when the program ends, and continues su then: su stops itself when the program is
// stopped, and then takes no note of its end. It may do that after the first signal. Kernels without
// pidfd_open do not tell the end of the program: then it is that of su, which may stay stopped.
func (s *Session) awaitEnd(pid int) {
	defer close(s.over)
	if !awaitProcess(pid) {
		<-s.ended
		return
	}
	go func() {
		for {
			s.su.Signal(syscall.SIGCONT) // it is of our process session
			select {
			case <-s.ended:
				return
			case <-time.After(runTime / 2):
			}
		}
	}()
}

// awaitProcess blocks until a process has ended. It returns false if the system does not tell that.
func awaitProcess(pid int) bool {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	program := os.NewFile(uintptr(fd), "program")
	defer program.Close()
	raw, err := program.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
	return err == nil
}

// Close ends a session in which nothing was started.
func (s *Session) Close() { s.socket.Close() }

// Over returns a channel that is closed when the program that was started has ended. PAM may still close
// the session then.
func (s *Session) Over() <-chan struct{} { return s.over }

// Wait blocks until the session is closed, after the program's end. It returns the program's status as a
// shell has it, and the signal that killed the program, or 0. The status is 255 if PAM does not close the
// session in time: only su knows it.
func (s *Session) Wait() (status byte, killed syscall.Signal) {
	select {
	case <-s.over:
	case <-s.ended:
	}
	select {
	case <-s.ended:
	case <-time.After(s.limit):
		s.log.Warn("PAM does not close the session; the program's status is lost", "pid", s.su.Pid)
		return 255, 0
	}
	if s.state == nil {
		return 255, 0
	}
	if ws, ok := s.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return byte(128 + int(ws.Signal())), ws.Signal()
	}
	status = byte(s.state.ExitCode())
	if status > 128 && s.prints(syscall.Signal(status-128).String()) {
		killed = syscall.Signal(status - 128)
	}
	return status, killed
}

// prints reports whether a line that su has printed begins with some words, as it does with the name of the
// signal that killed the program.
func (s *Session) prints(words string) bool {
	b, _ := io.ReadAll(io.NewSectionReader(s.words, 0, maxPrinted))
	for line := range strings.Lines(string(b)) {
		if len(line) > len(words) && strings.EqualFold(line[:len(words)], words) {
			return true
		}
	}
	return false
}
