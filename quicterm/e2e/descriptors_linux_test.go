package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Connections bring the daemon to its limit of descriptors while a client resumes: the
// client stays, and when the daemon has descriptors again, all bytes of its pipe arrive.
func TestResumeWithoutDescriptors(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	cmd := h.Via(p.Addr(), "connect", nil, "cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errs := new(rig.Output), new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // if the test ends before the client
	in := random(1 << 20)
	stdin.Write(in[:1000])
	out.Await(t, 999, regexp.MustCompile("(?s)."))

	p.Set(netem.Config{Down: true})
	h.Stop(syscall.SIGKILL)
	h.Start()
	instance := newInstance()
	_, attached := attachRaw(t, h, &wire.Attach{Instance: instance, Command: "cat"})
	var before unix.Rlimit
	switch err := unix.Prlimit(h.Network(), unix.RLIMIT_NOFILE, nil, &before); {
	case errors.Is(err, syscall.EPERM):
		t.Skip("root may not limit other accounts here, and the network process is another one")
	case err != nil:
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: descriptors(t, h) + 20, Max: before.Max}
	if err := unix.Prlimit(h.Network(), unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); ; n++ {
		c := dialRaw(t, h)
		c.send(encode(t, newResume(attached, n, instance)))
		if accepted := c.awaitAnswer(); !accepted {
			break
		}
		if n > 20 {
			t.Fatalf("the daemon serves %d connections with %d descriptors", n, limit.Cur)
		}
	}
	from := h.Log.Len()
	p.Set(netem.Config{})
	h.Log.Await(t, from, regexp.MustCompile(fmt.Sprintf("(?s)(client refused.*%s.*){3}", syscall.EMFILE)))

	if err := unix.Prlimit(h.Network(), unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	stdin.Write(in[1000:])
	stdin.Close()
	if err := cmd.Wait(); err != nil || out.String() != string(in) {
		t.Errorf("%d of %d bytes came back, %v: %s", out.Len(), len(in), err, errs)
	}
}

// descriptors returns how many descriptors the daemon has.
func descriptors(t *testing.T, h *rig.Host) uint64 {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", h.Network()))
	if err != nil {
		t.Fatal(err)
	}
	return uint64(len(files))
}

// awaitAnswer reports whether the daemon accepts a Resume. If not, it must close the
// connection without an answer.
func (c *rawClient) awaitAnswer() (accepted bool) {
	c.t.Helper()
	c.read(func(r io.Reader) {
		m, err := wire.Read(r, wire.MaxMessage)
		if accepted = err == nil; accepted && m.Type != wire.TypeResumed {
			c.t.Fatalf("answered with message %d", m.Type)
		}
	})
	return accepted
}
