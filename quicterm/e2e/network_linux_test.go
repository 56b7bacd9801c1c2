package e2e

import (
	"fmt"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// The process of root's daemon that talks to clients has a user id of its own, no capabilities and no
// groups, gets no new privileges, and sees no file.
func TestNetworkProcessHasNoRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's daemon has such a process")
	}
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr) // it serves
	dir := fmt.Sprintf("/proc/%d/", h.Network())
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`Uid:\t([1-9]\d*)\t(\d+)\t(\d+)\t(\d+)`, `Gid:\t([1-9]\d*)\t.*`, `Groups:\t *`, `CapInh:\t0+`, `CapPrm:\t0+`, `CapEff:\t0+`,
		`CapAmb:\t0+`, `NoNewPrivs:\t1`, `Seccomp:\t2`,
	} {
		if !regexp.MustCompile("(?m)^" + want + "$").Match(status) {
			t.Errorf("no %s in\n%s", want, status)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^[UG]id:\t(\d+)\t(\d+)\t(\d+)\t(\d+)$`).FindAllSubmatch(status, -1) {
		for _, id := range line[1:] {
			if string(id) != string(line[1]) {
				t.Errorf("several ids: %s", line[0])
			}
		}
	}
	tasks, err := os.ReadDir(dir + "task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks { // each thread has its own
		status, err := os.ReadFile(dir + "task/" + task.Name() + "/status")
		if err == nil && !regexp.MustCompile(`(?s)\nCapEff:\t0+\n.*\nNoNewPrivs:\t1\nSeccomp:\t2\n`).Match(status) {
			t.Errorf("a thread has\n%s", status)
		}
	}
	if files, err := os.ReadDir(dir + "root"); err != nil || len(files) > 0 {
		t.Errorf("it sees %v, %v", files, err)
	}
	x.Send("exit\r")
	x.Exit()
}

// When the network process is killed, who types notices nothing but a moment, and the daemon itself
// goes on.
func TestNetworkProcessKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's daemon has such a process")
	}
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	for i := range 3 {
		killed := h.Network()
		if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		x.Run(fmt.Sprintf("echo aft''er %d", i), fmt.Sprintf("after %d", i))
		t.Logf("echoed after %v", time.Since(start))
		if h.Network() == killed {
			t.Error("the killed process is found")
		}
		time.Sleep(time.Duration(i) * rig.Patience / 1000)
	}
	if err := h.Daemon.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the daemon: %v", err)
	}
	x.Send("exit\r")
	x.Exit()
}
