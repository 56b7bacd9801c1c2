package e2e

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// onePTY makes the daemon and its sessions share one pseudo-terminal.
type onePTY struct{}

func (onePTY) In(cmd *exec.Cmd) *exec.Cmd {
	const script = `mount -t devpts -o newinstance,ptmxmode=666,max=1 devpts /dev/pts && mount --bind /dev/pts/ptmx /dev/ptmx && exec "$@"`
	return exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", script, "sh", cmd.Path}, cmd.Args[1:]...)...)
}

// A machine without a further pseudo-terminal says so to who asks for one. Who has one keeps it.
func TestNoPTY(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	if out, err := (onePTY{}).In(exec.Command("true")).CombinedOutput(); err != nil {
		t.Skipf("no pseudo-terminals of its own: %v, %s", err, out)
	}
	h := newHost(t)
	h.In = onePTY{}
	h.Start()
	x := h.Shell(h.Addr)
	refused := rig.Open(t, h.QT("connect"))
	refused.Expect("no terminal available: ")
	if status := refused.Exit(); status != 255 {
		t.Errorf("exit status %d, want 255", status)
	}
	wantOutput(t, h.QT("connect", "echo without a terminal"), "without a terminal\n")
	x.Run("echo still he''re", "still here")
	x.Send("exit\r")
	x.Exit()
}

// All processes are stopped for a while, as those of a virtual machine that is suspended, in the middle of
// output. Then all of it arrives.
func TestSuspended(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	x.Send("seq 1000000 1000999; echo the e''nd\r")
	x.Expect("1000000")
	pids := append(h.Children(), h.Daemon.Process.Pid, x.Cmd.Process.Pid)
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		for _, pid := range pids {
			if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH { // the child of a login may have ended
				t.Error(err)
			}
		}
		if sig == syscall.SIGSTOP {
			time.Sleep(2 * time.Second) // longer than a lost path is waited for
		}
	}
	x.Expect("1000999")
	x.Expect("the end")
	x.Run("echo typed af''terwards", "typed afterwards")
	x.Send("exit 5\r")
	if status := x.Exit(); status != 5 {
		t.Errorf("exit status %d, want 5", status)
	}
}
