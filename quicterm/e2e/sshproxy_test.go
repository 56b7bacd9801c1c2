//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// Plain ssh, sftp and a forwarded port go through qt by what qt ssh-config prints. Their
// connections survive a new address and an outage, byte for byte.
func TestSSHConfig(t *testing.T) {
	h := newHost(t)
	h.Start()
	config := startSSHD(t, h, "")
	h.Via(h.Addr, "connect", nil) // writes the client's settings file
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env, cmd.Dir = h.Env(), h.Dir
		return cmd
	}
	print := func(t *testing.T, p *netem.Proxy, args ...string) string {
		t.Helper()
		args = append([]string{"ssh-config", "-F", config, "-p", fmt.Sprint(p.Addr().Port())}, args...)
		out, err := command(h.Bin+"/qt", args...).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	link := netem.Config{Delay: 5 * time.Millisecond, Rate: 50_000_000} // events come within a transfer
	in := random(6 << 20)
	// through returns a link of a test's own, ssh's configuration to go through it, and what
	// disturbs it.
	through := func(t *testing.T) (p *netem.Proxy, file string, disturb func(step int)) {
		t.Helper()
		p = h.Proxy(link)
		name := fmt.Sprintf("ssh_config_qt_%d", p.Addr().Port())
		h.Write(name, print(t, p, "server"))
		return p, h.Path(name), func(step int) {
			switch step {
			case 1:
				p.Rebind()
			case 2:
				p.Set(netem.Config{Down: true})
				time.AfterFunc(2*time.Second, func() { p.Set(link) })
			}
		}
	}

	t.Run("command", func(t *testing.T) {
		_, config, _ := through(t)
		t.Parallel()
		cmd := command("ssh", "-F", config, "server.qt", "echo $SSH_CONNECTION; exit 7")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if got := exitStatus(t, err); got != 7 || errs.Len() > 0 || !regexp.MustCompile(`^127\.0\.0\.1 \d+ 127\.0\.0\.1 \d+\n$`).Match(out) {
			t.Errorf("status %d, output %q, errors %q", got, out, errs.String())
		}
	})
	t.Run("pattern", func(t *testing.T) {
		h.Write("ssh_config_all", print(t, h.Proxy(link), "-i", h.Path("id"))+"    UserKnownHostsFile "+h.Path("known_pattern")+"\n")
		t.Parallel()
		for range 2 { // the key is unknown, and then known
			out, err := command("ssh", "-F", h.Path("ssh_config_all"), "server.qt", "echo there").Output()
			if err != nil || string(out) != "there\n" {
				t.Errorf("%v: %q", err, out)
			}
		}
	})
	t.Run("pipe", func(t *testing.T) {
		_, config, disturb := through(t)
		t.Parallel()
		cmd := command("ssh", "-F", config, "server.qt", "cat")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out := new(rig.Output)
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		thirds(t, stdin, in, func(sent, step int) {
			out.Await(t, sent/2, regexp.MustCompile("(?s)."))
			disturb(step)
		})
		stdin.Close()
		if err := cmd.Wait(); err != nil || out.String() != string(in) {
			t.Errorf("%v: %d bytes came back, not the %d that were sent", err, out.Len(), len(in))
		}
	})
	t.Run("forward", func(t *testing.T) {
		_, config, disturb := through(t)
		t.Parallel()
		echo, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer echo.Close()
		go func() {
			c, err := echo.Accept()
			if err == nil {
				io.Copy(c, c)
				c.Close()
			}
		}()
		port := freePort(t)
		cmd := command("ssh", "-F", config, "-o", "ExitOnForwardFailure=yes", "-L", fmt.Sprintf("%d:%v", port, echo.Addr()), "server.qt", "echo ready; cat")
		hold, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		ready := new(rig.Output)
		cmd.Stdout, cmd.Stderr = ready, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ready.Await(t, 0, regexp.MustCompile("ready"))
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		out := new(rig.Output)
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.Copy(out, c)
		}()
		thirds(t, c, in, func(sent, step int) {
			out.Await(t, sent/2, regexp.MustCompile("(?s)."))
			disturb(step)
		})
		c.(*net.TCPConn).CloseWrite()
		<-done
		if out.String() != string(in) {
			t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
		}
		hold.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("sftp", func(t *testing.T) {
		_, config, disturb := through(t)
		t.Parallel()
		transfer(t, h, command("sftp", "-F", config, "-b", h.Path("batch"), "server.qt"), in, disturb)
	})
	t.Run("end in an outage", func(t *testing.T) {
		p, config, _ := through(t)
		t.Parallel()
		cmd := command("ssh", "-F", config, "server.qt", "echo ready; cat")
		inputPipe(t, cmd)
		out, errs := new(rig.Output), new(rig.Output)
		cmd.Stdout, cmd.Stderr = out, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		out.Await(t, 0, regexp.MustCompile("ready"))
		p.Set(netem.Config{Down: true})
		start := time.Now()
		cmd.Process.Signal(syscall.SIGTERM) // ssh waits for qt
		cmd.Wait()
		if took := time.Since(start); took > rig.Patience/2 || strings.Contains(errs.String(), "qt:") {
			t.Errorf("ssh ended after %v: %q", took, errs.String())
		} else {
			t.Log(took)
		}
	})
}

// thirds writes b in three parts, and calls between after the first and the second.
func thirds(t *testing.T, w io.Writer, b []byte, between func(sent, step int)) {
	t.Helper()
	third := len(b) / 3
	for i := range 3 {
		end := (i + 1) * third
		if i == 2 {
			end = len(b)
		}
		if _, err := w.Write(b[i*third : end]); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			between(end, i+1)
		}
	}
}

// transfer runs sftp, whose batch file it writes: a file goes there and comes back. It calls
// disturb within each of the two transfers.
func transfer(t *testing.T, h *rig.Host, cmd *exec.Cmd, in []byte, disturb func(step int)) {
	t.Helper()
	h.Write("in", string(in))
	h.Write("batch", fmt.Sprintf("put %s %s\nget %[2]s %[3]s\n", h.Path("in"), h.Path("there"), h.Path("back")))
	out := new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"there", "back"} {
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			if info, err := os.Stat(h.Path(name)); err == nil && info.Size() > 0 {
				break
			}
			if time.Since(start) > 3*rig.Patience { // the other transfer comes first
				cmd.Process.Kill()
				t.Fatalf("no %s: %s", name, out.String())
			}
		}
		disturb(i + 1)
	}
	if err := cmd.Wait(); err != nil || h.Read("back") != string(in) || h.Read("there") != string(in) {
		t.Errorf("%v: %s", err, out.String())
	}
}
