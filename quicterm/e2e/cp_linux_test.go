package e2e

import (
	"bytes"
	"errors"
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
		cmd := cp(h, h.Addr, args...)
		to := cmd.Args[len(cmd.Args)-1]
		out, err := cmd.CombinedOutput()
		want := "qt: " + to + "/large: no space left on device (a part of it is there: --resume continues)\n"
		if status := exitStatus(t, err); status != 255 || string(out) != want {
			t.Errorf("qt cp %q: status %d, %s, want %s", args, status, out, want)
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

// A file with holes has them in the copy, there, back and from host to host, also if it is continued.
func TestCopySparse(t *testing.T) {
	skipUnderRace(t)
	h := newHost(t)
	h.Start()
	const large, small, page = 40<<20 + 5, 100_000, 4 << 10
	write := func(name string, size int64, at ...int64) {
		t.Helper()
		f, err := os.Create(h.Path(name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = f.Truncate(size)
		for _, at := range at {
			if err == nil {
				_, err = f.WriteAt(random(page), at)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("large", large, 0, 5*page, 9<<20, 30<<20)
	write("small", small, 7*page)
	write("empty", large)
	same := func(name, there string) {
		t.Helper()
		var source, copied syscall.Stat_t
		err := errors.Join(syscall.Stat(h.Path(name), &source), syscall.Stat(there, &copied))
		got, readErr := os.ReadFile(there)
		want, _ := os.ReadFile(h.Path(name))
		if err != nil || readErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %d bytes, %v, %v", there, len(got), err, readErr)
		}
		if copied.Blocks > source.Blocks+8 { // the file system may need one for itself
			t.Errorf("%s has %d blocks, and its source %d", there, copied.Blocks, source.Blocks)
		}
	}
	for _, name := range []string{"large", "small", "empty"} {
		far := t.TempDir()
		copies(t, h, name, "HOST:"+far+"/there")
		same(name, far+"/there")
		copies(t, h, "HOST:"+far+"/there", "back")
		same(name, h.Path("back"))
		copies(t, h, "HOST:"+far+"/there", "HOST:"+far+"/again")
		same(name, far+"/again")
		for _, to := range []string{far + "/continued", h.Path("continued")} {
			begun, _ := os.ReadFile(far + "/there")
			if err := os.WriteFile(to+".qt.part", begun[:page], 0o600); err != nil {
				t.Fatal(err)
			}
		}
		copies(t, h, "--resume", name, "HOST:"+far+"/continued")
		same(name, far+"/continued")
		copies(t, h, "--resume", "HOST:"+far+"/there", "continued")
		same(name, h.Path("continued"))
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
