package tcp

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// queued returns how many bytes the kernel holds that were not sent, and that were sent and not
// acknowledged.
func queued(t *testing.T, c *Conn) (unsent, unacked int) {
	c.raw.Control(func(fd uintptr) {
		var err error
		if unsent, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD); err != nil {
			t.Fatal(err)
		}
		all, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		if err != nil {
			t.Fatal(err)
		}
		unacked = all - unsent
	})
	return unsent, unacked
}

// A flood to a peer that reads nothing leaves little in the kernel beyond what it could send.
func TestFloodLeavesLittleUnsent(t *testing.T) {
	client, server := connect(t, direct)
	for name, c := range map[string]*Conn{"client": client, "server": server} {
		for range 10 { // the kernel's buffer would grow with time
			c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			var err error
			for err == nil {
				_, err = c.tls.NetConn().Write(make([]byte, 16<<10))
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
		}
		unsent, unacked := queued(t, c)
		t.Logf("%s: %d bytes unsent, %d sent", name, unsent, unacked)
		if unsent > 3*notSentLowat {
			t.Errorf("%s: %d bytes are unsent", name, unsent)
		}
	}
}
