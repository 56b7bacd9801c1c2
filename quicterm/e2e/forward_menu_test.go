//go:build linux || darwin

package e2e

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// awaitForwards waits until qt status says of a client that it has these forwards.
func awaitForwards(t *testing.T, cmd *exec.Cmd, want string) {
	t.Helper()
	got := ""
	for until := time.Now().Add(rig.Patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		st := statusOf(t, cmd)
		if st == nil {
			continue
		}
		got = ""
		for _, f := range st.Forwards {
			got += fmt.Sprintf("-%s %s>%s %d %d %d\n", f.Kind, f.Listen, f.Target, f.Open, f.Sent, f.Received)
		}
		if got == want {
			return
		}
	}
	t.Errorf("qt status has the forwards\n%swant\n%s", got, want)
}

// awaitSidePipe waits until the daemon has a side pipe beside a session, or none any more. It calls try before each look.
func awaitSidePipe(t *testing.T, h *rig.Host, is bool, try func()) {
	t.Helper()
	for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
		try()
		holders, _ := filepath.Glob(h.Path("run/*/" + strings.Repeat("[0-9a-f]", 32) + ".sock"))
		if (len(holders) == 2) == is {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("a side pipe is not %v: %q", is, holders)
		}
	}
}

// ~+ adds and removes forwards in a session, and keys go to the program again after it. qt status counts what they move.
func TestForwardMenu(t *testing.T) {
	h := newHost(t)
	h.Start()
	echo := echoes(t, "tcp", "127.0.0.1:0", "port:").Addr().(*net.TCPAddr).Port
	x := h.Shell(h.Addr, "-s", "work")
	x.Send("~+")
	x.Expect("a number removes one, Enter leaves")
	x.Expect("qt: $")
	local := freePort(t)
	x.Send(fmt.Sprintf("-L %dX\x7f:127.0.0.1:%d\r", local, echo))
	x.Expect(fmt.Sprintf(` 1  -L localhost:%d to 127.0.0.1:%d: open 0, sent 0 B, received 0 B\r\n`, local, echo))
	x.Send(fmt.Sprintf("-R 0:127.0.0.1:%d\r", echo))
	far := x.Expect(`-R localhost:0: the server listens at port (\d+)\r\n`)[1]
	x.Expect(` 2  -R localhost:0 to `)
	for line, want := range map[string]string{
		"-L 80:x": `-L 80:x: write it as`, "x": "write a forward as", "3": "there is no forward 3",
		fmt.Sprintf("-L %d:x:1", local):       fmt.Sprintf("-L localhost:%d: address already in use", local),
		fmt.Sprintf("-R %s:127.0.0.1:1", far): fmt.Sprintf("-R localhost:%s: address already in use", far),
	} {
		x.Send(line + "\r")
		x.Expect(want)
		x.Expect("Enter leaves")
	}
	wantAnswer(t, "-L", reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local)), "one", "port:one")
	wantAnswer(t, "-R", reach(t, "tcp", "127.0.0.1:"+far), "two", "port:two")
	open := reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local))
	io.WriteString(open, "three")
	moved := fmt.Sprintf("-L localhost:%d>127.0.0.1:%d", local, echo)
	awaitForwards(t, x.Cmd, fmt.Sprintf("%s 1 8 18\n-R localhost:0>127.0.0.1:%d 0 8 3\n", moved, echo))
	x.Send("\r")
	x.Send("echo typ''ed\r")
	x.Expect("typed")
	x.Send("~+")
	x.Expect("Enter leaves")
	x.Send("2\r1\r\r")
	x.Expect("Enter leaves")
	x.Expect("Enter leaves")
	awaitForwards(t, x.Cmd, "")
	for _, port := range []string{fmt.Sprint(local), far} {
		for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
			c, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				break
			}
			c.Close()
			if time.Now().After(until) {
				t.Fatalf("port %s is still forwarded", port)
			}
		}
	}
	wantAnswer(t, "one that is open", open, "!", "port:three!")
	x.Send(fmt.Sprintf("~+-R 0:127.0.0.1:%d\r", echo))
	x.Expect("the server listens at port")
	x.Expect("Enter leaves")
	x.Send("1\r\r")
	x.Expect("Enter leaves")
	awaitSidePipe(t, h, false, func() {})
	spec := fmt.Sprintf("-L %d:127.0.0.1:%d\r", local, echo)
	x.Send("~+" + spec + "\r")
	x.Expect(" 1  -L ")
	wantAnswer(t, "-L again", reach(t, "tcp", fmt.Sprintf("127.0.0.1:%d", local)), "four", "port:four")
	awaitSidePipe(t, h, true, func() {})
	awaitSidePipe(t, h, false, func() { // what is removed last finds whether connections have ended
		x.Send("~+1\r" + spec + "1\r\r")
		for range 4 {
			x.Expect("Enter leaves")
		}
	})
	x.Send("~+-L 1:")
	x.Expect("-L 1:$")
	x.Send("\x03") // leaves the menu
	x.Send("echo ag''ain\r")
	x.Expect("again")
	x.Send("~+")
	x.Expect("Enter leaves")
	x.Send("exit\r\r") // the menu has that
	x.Expect("write a forward as")
	x.Send("exit\r")
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status %d", got)
	}
}

// qt status shows a client that only forwards.
func TestForwardStatus(t *testing.T) {
	h := newHost(t)
	h.Start()
	local := freePort(t)
	cmd := h.Via(h.Addr, "forward", []string{"-D", fmt.Sprint(local)})
	forwarding(t, cmd)
	awaitForwards(t, cmd, fmt.Sprintf("-D localhost:%d> 0 0 0\n", local))
	for until := time.Now().Add(rig.Patience); ; time.Sleep(50 * time.Millisecond) {
		st := statusOf(t, cmd)
		if st != nil && st.State == "live" && st.Session == "" && len(st.Paths) == 1 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%+v", st)
		}
	}
}
