package e2e

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A full disk ends a copy with a line, here and there, and no file has its name before it is whole.
func TestCopyToFullDisk(t *testing.T) {
	if !insideWith(t, "ip") {
		return
	}
	h := newHost(t)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	disk := h.Path("disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	rig.IP(t, "link", "set", "lo", "up")
	h.Start()
	h.Write("large", string(random(8<<20)))
	for _, args := range [][]string{{"large", "HOST:" + disk}, {"HOST:" + h.Path("large"), "disk"}} {
		out, err := cp(h, h.Addr, args...).CombinedOutput()
		const want = "qt: large: no space left on device (a part of it is there: --resume continues)\n"
		if status := exitStatus(t, err); status != 255 || string(out) != want {
			t.Errorf("qt cp %q: status %d, %s", args, status, out)
		}
		if _, err := os.Stat(disk + "/large"); err == nil {
			t.Error("the file is there")
		}
		os.Remove(disk + "/large.qt.part")
	}
}

// Ctrl-C ends a copy at once, also without a network, and says how it is continued. On a terminal, a bar shows how far it is.
func TestCopyInterrupted(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{Rate: 20_000_000})
	in := random(16 << 20)
	h.Write("large", string(in))
	far := t.TempDir()
	cmd := cp(h, p.Addr(), "large", "HOST:"+far)
	x := rig.Open(t, cmd)
	x.Expect(`\d+ % of 16.8 MB, [0-9.]+ [kM]B/s, \d+s left`)
	awaitSize(t, far+"/large.qt.part", 1<<20)
	p.Set(netem.Config{Down: true})
	cmd.Process.Signal(syscall.SIGINT)
	x.Expect(`ended by SIGINT; what is not whole ends in .qt.part, and --resume continues it`)
	if status := x.Exit(); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	copies(t, h, "--resume", "large", "HOST:"+far)
	if got, err := os.ReadFile(far + "/large"); err != nil || string(got) != string(in) {
		t.Errorf("%d bytes came, not the %d that were sent: %v", len(got), len(in), err)
	}
}

// A path may begin at the directory of a session.
func TestCopyToSession(t *testing.T) {
	h := newHost(t)
	h.Start()
	h.Write("a", "content")
	far := t.TempDir()
	start := h.Via(h.Addr, "connect", []string{"-d", "-s", "work", "--cwd", far})
	wantOutput(t, start, "work\n")
	copies(t, h, "a", "HOST:@work:")
	copies(t, h, "HOST:@work:a", "HOST:@work:./b")
	copies(t, h, "HOST:@work:"+far+"/b", "back")
	for _, name := range []string{far + "/a", far + "/b", h.Path("back")} {
		if got, err := os.ReadFile(name); err != nil || string(got) != "content" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	wantError(t, cp(h, h.Addr, "a", "HOST:@none:"), "none")
}
