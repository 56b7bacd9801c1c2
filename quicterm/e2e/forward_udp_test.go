//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// echoesUDP starts a server of a test, which sends back what it gets. A port of 0 is any.
func echoesUDP(t *testing.T, port int) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			c.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	return c
}

// wantDatagram sends a datagram, and checks that it comes back.
func wantDatagram(t *testing.T, why string, c net.Conn, datagram []byte) {
	t.Helper()
	c.Write(datagram)
	c.SetReadDeadline(time.Now().Add(rig.Patience))
	buf := make([]byte, 1<<16)
	if n, err := c.Read(buf); !bytes.Equal(buf[:n], datagram) {
		t.Errorf("%s: %d bytes come back of %d: %v", why, n, len(datagram), err)
	}
}

// Datagrams are forwarded, and what comes back goes to their source, also after a restart of the daemon, and when nobody
// listened at the target for a time.
func TestForwardUDP(t *testing.T) {
	h := newHost(t)
	h.Start()
	target := echoesUDP(t, freePort(t)) // which the system gives to no other socket meanwhile
	port := target.LocalAddr().(*net.UDPAddr).Port
	x := h.Shell(h.Addr, "-s", "work")
	x.Send("~+")
	x.Expect("Enter leaves")
	local := freePort(t)
	x.Send(fmt.Sprintf("-L udp/%d:localhost:%d\r", local, port))
	at := fmt.Sprintf("-L udp/localhost:%d to udp/localhost:%d: open ", local, port)
	x.Expect(at + "0,")
	x.Send("-R udp/53:localhost:53\r")
	x.Expect("-R udp/53:localhost:53: UDP is forwarded by -L alone")
	source := func() net.Conn {
		c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", local))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	one, two := source(), source()
	big := random(60000)
	if runtime.GOOS == "darwin" { // which sends none above 9216
		big = big[:9000]
	}
	wantDatagram(t, "-L udp/", one, []byte("one"))
	wantDatagram(t, "from another source", two, big)
	wantDatagram(t, "from the first one", one, []byte("three"))
	moved := fmt.Sprintf("-L udp/localhost:%d>udp/localhost:%d ", local, port)
	awaitForwards(t, x.Cmd, fmt.Sprintf("%s2 %d %d\n", moved, len(big)+8, len(big)+8))
	h.Stop(syscall.SIGKILL)
	h.Start()
	wantDatagram(t, "after a restart", one, []byte("four"))

	target.Close()
	awaitRefusal(t, x.Cmd, one, uint64(len(big)+13), uint64(len(big)+12))
	echoesUDP(t, port)
	wantDatagram(t, "after the target has come back", one, []byte("five"))
	x.Send("1\r\r")
	x.Expect("Enter leaves")
	awaitForwards(t, x.Cmd, "")
	x.Send("exit\r")
	x.Exit()
}

// awaitRefusal waits until the flow of a source has ended, of two, because its datagrams are refused. It sends more of them, as
// the kernel bounds how often it tells of that (icmp_msgs_per_sec). At least sent bytes have gone to the targets then, and
// exactly received bytes have come back.
func awaitRefusal(t *testing.T, cmd *exec.Cmd, source net.Conn, sent, received uint64) {
	t.Helper()
	for until := time.Now().Add(rig.Patience); time.Now().Before(until); {
		io.WriteString(source, "x")
		for again := time.Now().Add(time.Second); time.Now().Before(again); time.Sleep(50 * time.Millisecond) {
			if st := statusOf(t, cmd); st != nil && len(st.Forwards) == 1 && st.Forwards[0].Open == 1 {
				if f := st.Forwards[0]; f.Sent < sent || f.Received != received {
					t.Errorf("%d bytes are sent and %d received, want at least %d and exactly %d", f.Sent, f.Received, sent, received)
				}
				return
			}
		}
	}
	t.Error("a flow whose target has gone does not end")
}
