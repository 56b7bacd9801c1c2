package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ofGroup starts a command as root with another group. The kernel shows the group of a process in /proc, and that of root
// if the process cannot be dumped.
type ofGroup uint32

func (g ofGroup) In(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Gid: uint32(g)}}
	return cmd
}

// No other process reads the memory of root's daemon, and it leaves no core file. Sessions have the limits that the daemon was started
// with.
func TestDaemonLeavesNoCore(t *testing.T) {
	if !insideWith(t, "ip") {
		return
	}
	const group = 77009
	h := pamHost(t)
	h.In = ofGroup(group)
	// In units of 512 bytes, as a shell has them.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 7 * 512, Max: 9 * 512}); err != nil {
		t.Fatal(err)
	}
	for _, login := range []string{"pam", "direct"} {
		if login == "direct" {
			withoutSu(t)
		}
		h.Start()
		h.KnowName("127.0.0.1", h.Addr.Port(), h.Path("host_key.pub"))
		wantOutput(t, h.To("127.0.0.1", h.Addr.Port(), "connect", []string{"-l", "ann"}, "ulimit -Sc; ulimit -Hc"), "7\n9\n")
		proc := fmt.Sprintf("/proc/%d/", h.Daemon.Process.Pid)
		limits, err := os.ReadFile(proc + "limits")
		if err != nil || !regexp.MustCompile(`(?m)^Max core file size +0 +4608 +bytes`).Match(limits) {
			t.Errorf("login %s: the daemon has %s, %v", login, limits, err)
		}
		info, err := os.Stat(proc + "environ")
		if err != nil {
			t.Fatal(err)
		}
		if gid := info.Sys().(*syscall.Stat_t).Gid; gid != 0 {
			t.Errorf("login %s: the daemon can be dumped: its files in /proc are of group %d", login, gid)
		}
		h.Stop(syscall.SIGTERM)
	}
}
