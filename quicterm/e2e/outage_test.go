//go:build linux || darwin

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// What is typed and printed while the network is gone arrives when it is back.
// The title says so meanwhile.
func TestOutage(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr())
	x.Run("cd "+h.Dir, "cd")
	x.Run(`printf '\033]2;my title\007'; mkfifo go; (read x < go; echo $x; seq 1 5000) & echo ready`, "ready")
	p.Set(netem.Config{Down: true})
	x.Send("echo ty''ped > go; wait\r")
	x.Expect(`\x1b\]2;qt: no contact since [0-9:]+, trying`)
	p.Set(netem.Config{})
	from := x.Read
	x.Expect(`\x1b\[23;2t\x1b\]2;my title\x07`)
	x.Read = from
	want := "typed\r\n"
	for n := 1; n <= 5000; n++ {
		want += fmt.Sprintf("%d\r\n", n)
	}
	got := x.Expect(`(?s)typed.*5000\r\n`)[0]
	// The title is set among it, wherever that is.
	title := regexp.MustCompile(`\x1b\[2[23];2t|\x1b\]2;[^\a\x1b]*(\a|\x1b\\)`)
	if got = title.ReplaceAllString(got, ""); got != want {
		t.Errorf("got %q", got)
	}
	x.Run("echo on", "on")
}

// The daemon is killed and started anew: nobody notices but for the wait.
func TestDaemonRestart(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	x.Run("a=kept; echo $$", "[0-9]+")
	for range 2 {
		h.Stop(syscall.SIGKILL)
		x.Send("echo $a and")
		h.Start()
		x.Run(" typed meanwhile", "kept and typed meanwhile")
	}
	x.Send("exit\r")
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
}

// The client is killed: the session goes on, and is found from elsewhere with
// all that was printed meanwhile.
func TestClientKilled(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "long")
	x.Run("cd "+h.Dir, "cd")
	x.Send("mkfifo go; echo fifo; read x < go; seq 10001 20000; echo the-''end\r")
	x.Expect("fifo\r\n")
	x.Cmd.Process.Kill()
	x.Cmd.Wait()
	y := rig.Open(t, h.QT("attach", "long"))
	y.Expect("fifo\r\n")
	y.Cmd.Process.Kill()
	y.Cmd.Wait()
	if out, err := h.QT("connect", "echo > "+h.Path("go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	z := rig.Open(t, h.QT("attach", "long"))
	seen := z.Expect(`(?s)10001\r\n.*20000\r\nthe-end`)[0]
	for n := 10001; n <= 20000; n++ {
		line := fmt.Sprintf("%d\r\n", n)
		i := strings.Index(seen, line)
		if i < 0 {
			t.Fatalf("line %d is missing", n)
		}
		seen = seen[i+len(line):]
	}
	z.Send("exit\r")
	if got := z.Exit(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
}

// Another client takes the session over: the first is told by whom, and ends.
func TestDisplaced(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "mine")
	y := rig.Open(t, h.QT("attach", "mine"))
	x.Expect("taken over by " + regexp.QuoteMeta(me(t)) + "@127.0.0.1")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status of the displaced client: %d, want 255", got)
	}
	y.Run("echo to you", "to you")
}

// A client that was away while it was displaced is told so when it comes back.
func TestDisplacedWhileAway(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr(), "-s", "mine")
	p.Set(netem.Config{Down: true})
	x.Send("lost\r")
	y := rig.Open(t, h.QT("attach", "mine"))
	y.Run("echo to you", "to you")
	p.Set(netem.Config{})
	x.Expect("taken over by " + regexp.QuoteMeta(me(t)) + "@127.0.0.1")
	if got := x.Exit(); got != 255 {
		t.Errorf("exit status of the displaced client: %d, want 255", got)
	}
	y.Run("echo still me", "still me")
	if strings.Contains(y.Out.String(), "lost") {
		t.Error("what the displaced client typed was run")
	}
}

// A pipe goes on after outages and a restart of the daemon, with every byte.
func TestPipeOutage(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	in := random(8 << 20)
	cmd := h.Via(p.Addr(), "connect", nil, "cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := rig.NewOutput()
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	quarter := len(in) / 4
	any := regexp.MustCompile("(?s).")
	for i := range 4 {
		switch i {
		case 1:
			p.Rebind()
		case 2:
			p.Set(netem.Config{Down: true})
		case 3:
			h.Stop(syscall.SIGKILL)
			h.Start()
			p.Set(netem.Config{})
		}
		if _, err := stdin.Write(in[i*quarter : (i+1)*quarter]); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			out.Await(t, i*quarter, any) // so that the events are spread
		}
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if out.String() != string(in) {
		t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
	}
}

// When more is printed than is kept, the client is told exactly what is missing.
func TestOverflow(t *testing.T) {
	h := newHost(t)
	h.Settings["buffer_size"] = `"512KiB"`
	h.Start()
	x := h.Shell(h.Addr, "-s", "full")
	x.Run("cd "+h.Dir+"; mkfifo go done", "mkfifo")
	x.Send("read x < go; seq 1000000 1300000; echo the-''end; echo > done\r~d")
	x.Exit()
	// The program does not wait for anybody.
	if out, err := h.QT("connect", fmt.Sprintf("cd %s; echo > go; cat done", h.Dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	y := rig.Open(t, h.QT("attach", "full"))
	found := y.Expect(`output was lost, the server kept no more: (\d+) frames with (\d+) bytes; it goes on at frame (\d+)`)
	t.Logf("lost %s frames with %s bytes", found[1], found[2])
	rest := y.Expect(`(?s)\](.*)the-end`)[1]
	if !strings.HasSuffix(rest, "1299999\r\n1300000\r\n") {
		t.Errorf("the end of what was kept: %q", rest[max(0, len(rest)-100):])
	}
	y.Run("echo on", "on")
}

// The tools that people use ssh for work with qt in its place.
func TestTools(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	content := random(1 << 20)
	h.Write("src/a file", string(content))
	h.Write("src/dir/b", "b\n")
	qt := fmt.Sprintf("%s connect -F /dev/null -p %d", filepath.Join(bin, "qt"), p.Addr().Port())
	shell := func(t *testing.T, script string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = h.Dir
		cmd.Env = append(h.Env(), "QT="+qt, "GIT_SSH_COMMAND="+qt,
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	h.Via(p.Addr(), "connect", nil) // writes the client's settings
	same := func(t *testing.T, dir string) {
		t.Helper()
		got, err := os.ReadFile(h.Path(dir + "/a file"))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes, %v; want the %d of the source", len(got), err, len(content))
		}
	}
	t.Run("tar", func(t *testing.T) {
		shell(t, fmt.Sprintf("mkdir tar; tar c -C src . | $QT 127.0.0.1 tar x -C %s/tar", h.Dir))
		same(t, "tar")
	})
	t.Run("rsync", func(t *testing.T) {
		if _, err := exec.LookPath("rsync"); err != nil {
			t.Skip("rsync is not installed")
		}
		shell(t, fmt.Sprintf(`rsync -a -e "$QT" src/ %s@127.0.0.1:%s/rsync/`, me(t), h.Dir))
		same(t, "rsync")
	})
	t.Run("git", func(t *testing.T) {
		if _, err := exec.LookPath("git"); err != nil {
			t.Skip("git is not installed")
		}
		shell(t, fmt.Sprintf(`
git init -q --bare repo.git
cd src && git init -q . && git add . && git commit -qm first
git push -q "127.0.0.1:%[1]s/repo.git" HEAD:main
cd .. && git clone -q -b main "127.0.0.1:%[1]s/repo.git" clone`, h.Dir))
		same(t, "clone")
	})
	t.Run("head", func(t *testing.T) {
		shell(t, `test "$($QT 127.0.0.1 yes | head -1)" = y`)
	})
}
