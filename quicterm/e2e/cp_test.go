//go:build linux || darwin

package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// cp returns a qt cp, for which HOST: is a daemon at an address.
func cp(h *rig.Host, addr netip.AddrPort, args ...string) *exec.Cmd {
	cmd := h.Via(addr, "cp", nil)
	host := cmd.Args[len(cmd.Args)-1]
	cmd.Args = cmd.Args[:len(cmd.Args)-1]
	for _, arg := range args {
		if rest, ok := strings.CutPrefix(arg, "HOST:"); ok {
			arg = host + ":" + rest
		}
		cmd.Args = append(cmd.Args, arg)
	}
	cmd.Dir = h.Dir
	return cmd
}

// copies runs a qt cp that copies all and prints nothing.
func copies(t *testing.T, h *rig.Host, args ...string) {
	t.Helper()
	if out, err := cp(h, h.Addr, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("qt cp %q: %v\n%s", args, err, out)
	}
}

// treeOf describes all that is below a directory, with times if that is asked for.
func treeOf(t *testing.T, dir string, times bool) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		fmt.Fprintf(&b, "%q %v", rel, info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(name)
			fmt.Fprintf(&b, " to %s", target)
		case !info.IsDir():
			content, _ := os.ReadFile(name)
			fmt.Fprintf(&b, " %d %x", len(content), sha256.Sum256(content))
		}
		if times && info.Mode()&fs.ModeSymlink == 0 {
			fmt.Fprintf(&b, " at %d", info.ModTime().Unix())
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// makeTree makes a tree of files of all kinds, sizes and names.
func makeTree(t *testing.T, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir+"/a/b/c", 0o755))
	must(os.MkdirAll(dir+"/empty", 0o755))
	must(os.MkdirAll(dir+"/private", 0o700))
	write := func(name string, size int, mode fs.FileMode) {
		t.Helper()
		must(os.WriteFile(filepath.Join(dir, name), random(size), mode))
		must(os.Chmod(filepath.Join(dir, name), mode))
	}
	write("none", 0, 0o644)
	write("a/script", 100, 0o755)
	write("a/secret", 200, 0o600)
	write("a/b/small", 128<<10, 0o644)
	write("a/b/more", 128<<10+1, 0o640)
	write("a/b/c/large", 9<<20+5, 0o644)
	write("private/large", 300<<10, 0o600)
	write("with space and 'quote\" $HOME", 10, 0o644)
	write("-r", 11, 0o644)
	write("new\nline", 12, 0o644)
	write(strings.Repeat("n", 255), 13, 0o644)
	if runtime.GOOS == "linux" { // macOS has no such names
		write("not \xff UTF-8", 14, 0o644)
	}
	for i := range 300 {
		write(fmt.Sprintf("a/b/many%d", i), i*7, 0o644)
	}
	must(os.Symlink("b/small", dir+"/a/link"))
	must(os.Symlink("/none/at all", dir+"/a/dangling"))
	must(os.Symlink("..", dir+"/a/up"))
	old := time.Unix(1e9, 0)
	must(os.Chtimes(dir+"/a/script", old, old))
	must(os.Chtimes(dir+"/a/b/c/large", old, old))
	must(os.Chtimes(dir+"/a/b", old, old))
}

// Trees are copied there, back, and from host to host, as they are.
func TestCopyTree(t *testing.T) {
	h := newHost(t)
	h.Start()
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	near, far := h.Path("near"), t.TempDir()
	makeTree(t, near)
	want, wantTimes := treeOf(t, near, false), treeOf(t, near, true)
	same := func(why, dir, want string, times bool) {
		t.Helper()
		if got := treeOf(t, dir, times); got != want {
			t.Errorf("%s: the tree is\n%s\nwant\n%s", why, got, want)
		}
	}
	copies(t, h, "-r", "near", "HOST:"+far)
	same("into a directory", far+"/near", want, false)
	copies(t, h, "-r", "near", "HOST:"+far)
	same("once more", far+"/near", want, false)
	copies(t, h, "-r", "--preserve", "near", "HOST:"+far+"/named")
	same("with another name", far+"/named", wantTimes, true)
	copies(t, h, "-r", "--preserve", "HOST:"+far+"/named", "back")
	same("back", h.Path("back"), wantTimes, true)
	copies(t, h, "-r", "HOST:"+far+"/near/.", "HOST:"+far+"/there")
	same("from host to host", far+"/there", want, false)

	copies(t, h, "near/-r", "near/none", "HOST:"+far+"/near/a/b/small", "HOST:"+far)
	copies(t, h, "HOST:"+far+"/-r", "HOST:"+far+"/small", ".")
	if got, _ := os.ReadFile(h.Path("small")); len(got) != 128<<10 {
		t.Errorf("%d bytes", len(got))
	}
	awaitList(t, h, "^ID.*\n$") // a side pipe is no session
}

// What cannot be copied is told in one line each, the rest is copied, and the exit status is 1.
func TestCopyFails(t *testing.T) {
	h := newHost(t)
	h.Start()
	far := t.TempDir()
	h.Write("a", "content")
	large := string(random(1 << 20))
	h.Write("large", large)
	mkdir := func(names ...string) {
		for _, name := range names {
			if err := os.MkdirAll(name, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	mkdir(h.Path("dir/sub"), far+"/to", far+"/dir", far+"/elsewhere")
	h.Write("dir/sub/b", "content")
	h.Write("dir/c", "content")
	if err := os.Symlink("../elsewhere", far+"/dir/sub"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(h.Path("dir/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(far+"/target", far+"/to/a"); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	fromHome, err := filepath.Rel(me.HomeDir, far)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"none", "a", "HOST:" + far}, 1, "qt: none: no such file or directory\n"},
		{[]string{"HOST:" + far + "/none", "a2"}, 1, `qt: .*/none: file does not exist\n`},
		{[]string{"dir", "HOST:" + far}, 1, "qt: dir: it is a directory: -r copies it\n"},
		{[]string{"a", "large", "HOST:" + far + "/none"}, 255, "qt: .*/none: there is no such directory\n"},
		{[]string{"a", "HOST:" + far + "/none/a"}, 1, "qt: \\S+:.*/none/a: no such file or directory\n"},
		{[]string{"large", "HOST:" + far + "/none/a"}, 1, "qt: \\S+:.*/none/a: no such file or directory\n"},
		{[]string{"a", "b"}, 255, "qt: no file is on a host: write it as host:path\n"},
		{[]string{"a", "HOST:" + far + "/to"}, 0, ""}, // in place of the link
		{[]string{"-r", "dir", "HOST:" + far}, 1,
			"qt: \\S+:.*/dir/sub: there is a link, which is not followed\nqt: dir/fifo: not a regular file\n"},
		{[]string{"-r", "HOST:" + far + "/dir", "HOST:" + far + "/dir/"}, 1, "qt: .*/dir: it cannot be copied into itself\n"},
		{[]string{"-r", "HOST:" + fromHome + "/dir", "HOST:" + far + "/dir/new"}, 1, "qt: .*/dir: it cannot be copied into itself\n"},
		{[]string{"a", h.Path("./a"), "HOST:" + far}, 1, "qt: .*/a: another one has the same name\n"},
	} {
		cmd := cp(h, h.Addr, test.args...)
		out, err := cmd.CombinedOutput()
		lines := strings.Split(string(out), "\n")
		if len(lines) == 3 && lines[0] > lines[1] {
			out = []byte(lines[1] + "\n" + lines[0] + "\n")
		}
		if status := exitStatus(t, err); status != test.status || !regexp.MustCompile("^"+test.want+"$").Match(out) {
			t.Errorf("qt cp %q: status %d, %s; want %d, %s", test.args, status, out, test.status, test.want)
		}
	}
	for name, want := range map[string]bool{"a": true, "dir/c": true, "to/a": true, "target": false, "elsewhere/b": false} {
		got, err := os.ReadFile(filepath.Join(far, name))
		if (err == nil) != want || want && string(got) != "content" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if parts, _ := filepath.Glob(far + "/*.part"); parts != nil {
		t.Errorf("%q are left", parts)
	}
}

// A copy that was killed in the middle is continued, and what is not its beginning is copied again.
func TestCopyResumes(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{Rate: 24_000_000}) // so that the second half takes 4 s
	far := t.TempDir()
	in := random(24 << 20)
	h.Write("large", string(in))
	for _, way := range []struct{ from, to, file string }{
		{"large", "HOST:" + far + "/large", far + "/large"},
		{"HOST:" + h.Path("large"), "back", h.Path("back")},
	} {
		cmd := cp(h, p.Addr(), way.from, way.to)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		part := way.file + ".qt.part"
		awaitSize(t, part, 12<<20)
		cmd.Process.Kill()
		cmd.Wait()
		if _, err := os.Stat(way.file); err == nil {
			t.Error("the file is there before it is whole")
		}
		f, err := os.OpenFile(part, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteAt([]byte("changed"), 10<<20)
		f.Close()
		copies(t, h, "--resume", way.from, way.to)
		got, err := os.ReadFile(way.file)
		if err != nil || !bytes.Equal(got, in) {
			t.Errorf("%d bytes came, not the %d that were sent: %v", len(got), len(in), err)
		}
		if _, err := os.Stat(part); err == nil {
			t.Error("the part is left")
		}
	}
}

// A copy goes on after a new address, an outage and a restart of the daemon.
func TestCopyRoams(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{Rate: 40_000_000})
	far := t.TempDir()
	in := random(32 << 20)
	h.Write("large", string(in))
	cmd := cp(h, p.Addr(), "large", "HOST:"+far)
	out := new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for i, happen := range []func(){
		func() { p.Rebind() },
		func() { p.Set(netem.Config{Down: true}) },
		func() {
			h.Stop(syscall.SIGKILL)
			h.Start()
			p.Set(netem.Config{Rate: 40_000_000})
		},
	} {
		if i < 2 {
			awaitSize(t, far+"/large.qt.part", int64(4*(i+1))<<20)
		}
		happen()
	}
	if err := cmd.Wait(); err != nil || out.Len() > 0 {
		t.Fatalf("%v: %s", err, out.String())
	}
	if got, err := os.ReadFile(far + "/large"); err != nil || !bytes.Equal(got, in) {
		t.Errorf("%d bytes came, not the %d that were sent: %v", len(got), len(in), err)
	}
}

// awaitSize waits until a file has more bytes than that.
func awaitSize(t *testing.T, name string, size int64) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(name); err == nil && info.Size() > size {
			return
		}
		if time.Since(start) > rig.Patience {
			t.Fatalf("%s does not get %d bytes", name, size)
		}
	}
}
