package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// listenVariable makes this program, in a session of a test, listen at a port, until its input ends.
const listenVariable = "QUICTERM_TEST_LISTEN"

func listenInSession() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.WriteString(c, "port:")
				io.Copy(c, c)
			}()
		}
	}()
	fmt.Printf("listens at %d\n", l.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}

// A port that a program of the session opens is told in the title, and by the events until it is closed; ~+ forwards it,
// and nothing else does.
func TestForwardPorts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not tell who listens")
	}
	h := newHost(t)
	h.Start()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := h.Shell(h.Addr, "-s", "work")
	events := readEvents(t, h, h.Addr, filepath.Join(t.TempDir(), "events"), "--since", "/dev/null")
	x.Send(listenVariable + "=yes setsid -w " + program + "\r") // in a session of its own, as a daemon
	port := x.Expect(`listens at (\d+)`)[1]
	x.Expect("port " + port + " is open: ~\\+")
	x.Send("\r~+") // an escape begins a line
	x.Expect("port " + port + " is open on the server: " + port + " forwards it")
	awaitForwards(t, x.Cmd, "")
	x.Send(port + "\r")
	local := x.Expect("port " + port + ` of the server is localhost:(\d+) here`)[1]
	if local == port { // the server is this machine
		t.Error("two programs have one port")
	}
	wantAnswer(t, "~+", reach(t, "tcp", "127.0.0.1:"+local), "one", "port:one")
	awaitForwards(t, x.Cmd, fmt.Sprintf("-L localhost:%s>localhost:%s 0 3 8\n", local, port))
	events.until("work port-opened " + port)
	x.Send("\r\x04")
	events.until("work port-closed " + port)
	x.Send("exit\r")
	x.Exit()
}
