package holder

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/machine/pam"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A lost session that is not started again closes its session of PAM, which was opened before the question.
func TestRevivalClosesLogin(t *testing.T) {
	t.Parallel()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	inner := os.NewFile(uintptr(ends[1]), "inner end")
	defer inner.Close()
	words, err := unix.MemfdCreate("words", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	su := exec.Command("/bin/true")
	if err := su.Start(); err != nil {
		t.Fatal(err)
	}
	login, err := pam.Adopt(fmt.Sprintf("%d,%d,%d", su.Process.Pid, ends[0], words), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := newRevival(&wire.Launch{PTY: true}, login)
	if _, err := r.Stdin().Write([]byte("n\r")); err != nil {
		t.Fatal(err)
	}
	inner.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := inner.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the session of PAM is told %v, want EOF", err)
	}
}
