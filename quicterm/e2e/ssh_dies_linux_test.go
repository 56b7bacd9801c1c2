package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// killSSH kills the ssh processes of a client. It returns how many there were.
func killSSH(t *testing.T, client int) (n int) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", client))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", client, task.Name()))
		for child := range strings.FieldsSeq(string(children)) {
			pid, _ := strconv.Atoi(child)
			if name, _ := os.ReadFile("/proc/" + child + "/comm"); string(name) == "ssh\n" && syscall.Kill(pid, syscall.SIGKILL) == nil {
				n++
			}
		}
	}
	return n
}

// Where only ssh reaches the host, a session continues over another ssh when the first has died.
func TestSSHDies(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	s.BlockNetwork()
	x := rig.Open(t, s.QT("connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	for range 2 {
		if killSSH(t, x.Cmd.Process.Pid) == 0 {
			t.Fatal("no ssh runs")
		}
		x.Run("echo st''ill here", "still here")
	}

	// It waits while ssh needs the user, and says so.
	key := s.Read("id")
	s.protect("secret")
	killSSH(t, x.Cmd.Process.Pid)
	x.Expect(`\x1b\]2;qt: no contact since [^\x07]*ssh needs you \([^\x07]*Permission denied \(publickey\)[^\x07]*qt attach target`)
	s.Write("id", key)
	x.Run("echo st''ill here", "still here")
	x.Send("exit\r")
	x.Exit()
}
