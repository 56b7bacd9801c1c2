package pam

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sessionOf returns a session in which a shell's script takes the place of su, and the end of its socket
// that Run has.
func sessionOf(t *testing.T, script string) (s *Session, inner *os.File) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	inner = os.NewFile(uintptr(ends[1]), "inner end")
	words := os.NewFile(uintptr(memory), "words")
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout = words
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kept, err := unix.FcntlInt(words.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	words.Close()
	if err == nil {
		s, err = Adopt(fmt.Sprintf("%d,%d,%d", cmd.Process.Pid, ends[0], kept), slog.New(slog.DiscardHandler))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.su.Kill()
		<-s.ended
		s.Close()
		inner.Close()
	})
	return s, inner
}

// startIn starts a program in a session: this process is Run, and the program its child, which has ended.
func startIn(t *testing.T, s *Session, inner *os.File) {
	t.Helper()
	if fd, err := unix.PidfdOpen(os.Getpid(), 0); err != nil {
		t.Skip("pidfd_open: ", err)
	} else {
		unix.Close(fd)
	}
	program := exec.Command("/bin/true")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Wait() })
	go func() {
		_, files, err := receive(inner)
		if err != nil {
			t.Error(err)
			return
		}
		binary.Write(files[len(files)-1], binary.BigEndian, uint32(program.Process.Pid))
		for _, f := range files {
			f.Close()
		}
	}()
	if pid, err := s.Start(&Program{Path: "/bin/true", Argv: []string{"true"}}, os.Stdin); err != nil || pid != program.Process.Pid {
		t.Fatalf("got process %d, %v", pid, err)
	}
}

// The process in the session must have the account's rights.
func TestAwaitUID(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 1} {
		s, inner := sessionOf(t, "exec sleep 60")
		if err := binary.Write(inner, binary.BigEndian, uint32(os.Getuid()+more)); err != nil {
			t.Fatal(err)
		}
		if err := s.Await(time.Now().Add(20 * time.Second)); (err == nil) != (more == 0) {
			t.Errorf("user id %d: %v", os.Getuid()+more, err)
		}
	}
}

// That PAM refuses is known when su ends, even if a module has left a process behind that has the socket.
func TestAwaitRefusal(t *testing.T) {
	t.Parallel()
	s, _ := sessionOf(t, "echo su: Not today; exit 1") // the other end stays open
	err := s.Await(time.Now().Add(20 * time.Second))
	if err == nil || !strings.HasSuffix(err.Error(), "refuses the session: Not today") {
		t.Errorf("got %v", err)
	}
}

// A session that PAM does not close ends with its program.
func TestWaitForNoClose(t *testing.T) {
	t.Parallel()
	s, inner := sessionOf(t, "exec sleep 60")
	s.limit = 10 * time.Millisecond
	startIn(t, s, inner)
	<-s.Over()
	if status, killed := s.Wait(); status != 255 || killed != 0 {
		t.Errorf("got %d, %v, want 255", status, killed)
	}
}

// su is continued after the program's end, as often as it stops.
func TestWaitForStopped(t *testing.T) {
	t.Parallel()
	s, inner := sessionOf(t, "kill -STOP $$; kill -STOP $$; exit 5")
	s.limit = 20 * time.Second
	startIn(t, s, inner)
	if status, _ := s.Wait(); status != 5 {
		t.Errorf("status %d, want 5", status)
	}
}

// The name - has another meaning for su: no session is opened.
func TestOpenDash(t *testing.T) {
	t.Parallel()
	if err := Open([]string{"/none/su", "-", "", "hold"}); err == nil || !strings.Contains(err.Error(), "the name -") {
		t.Errorf("got %v", err)
	}
}
