package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
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
	// A socket of type datagram would reach any other one of the machine.
	types := make(map[string]string)
	sockets, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sockets)) {
		if f := strings.Fields(line); len(f) > 6 {
			types["socket:["+f[6]+"]"] = f[4]
		}
	}
	descriptors, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	var lanes int
	for _, f := range descriptors {
		link, _ := os.Readlink(dir + "fd/" + f.Name())
		switch types[link] {
		case "0002":
			t.Errorf("descriptor %s is a unix socket for datagrams", f.Name())
		case "0005":
			lanes++
		}
	}
	if lanes != 1 {
		t.Errorf("it has %d lanes for the datagrams of one session", lanes)
	}
	x.Send("exit\r")
	x.Exit()
}

// A process to which the network process has passed its log does not keep the next network process from being started.
func TestLogOfNetworkProcessIsHeld(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's daemon has such a process")
	}
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	killed := h.Network()
	log, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/2", killed), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := syscall.Kill(killed, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	x.Run("echo aft''er", "after")
	x.Send("exit\r")
	x.Exit()
}

// A daemon whose network process does not answer is not healthy, and the doctor says so.
func TestNetworkProcessStopped(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's daemon has such a process")
	}
	h := newHost(t)
	h.Start()
	stopped := h.Network()
	if err := syscall.Kill(stopped, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	want(t, qtdDoctor(h), "daemon fail it starts no new sessions: .*clients are not served: ")
	if err := syscall.Kill(stopped, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	want(t, qtdDoctor(h), "daemon ok ")
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
