//go:build (linux && !android) || darwin

package status

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
)

// shortBase returns a directory for sockets with a short path, and that of our account in it.
func shortBase(t *testing.T) (rundir.Base, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	base := rundir.Base(dir)
	ours, err := base.Make()
	if err != nil {
		t.Fatal(err)
	}
	return base, ours
}

func serveHost(t *testing.T, base rundir.Base, host string) (stop func()) {
	t.Helper()
	stop, err := serveIn(base, host, func() *Report { return New(host, client.Status{}, nil) })
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// wantHosts asks until the clients that answer are those. On a busy machine one may need longer than
// askTimeout.
func wantHosts(t *testing.T, why string, base rundir.Base, want ...string) {
	t.Helper()
	for until := time.Now().Add(10 * askTimeout); ; {
		reports, err := askIn(base)
		if err != nil {
			t.Fatal(err)
		}
		hosts := map[string]bool{}
		for _, r := range reports {
			if r.State != stateSilent {
				hosts[r.Host] = true
			}
		}
		ok := len(hosts) == len(want)
		for _, h := range want {
			ok = ok && hosts[h]
		}
		if ok {
			return
		}
		if time.Now().After(until) {
			t.Errorf("%s: listed %v, want %v", why, hosts, want)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestServeStatus(t *testing.T) {
	base, dir := shortBase(t)
	wantHosts(t, "none", base)
	stopA, stopB := serveHost(t, base, "a"), serveHost(t, base, "b")
	// The directory has other files too.
	for _, name := range []string{"qtd.sock", "client-", "client-soon", "00112233445566778899aabbccddeeff.sock"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "client-*.sock"))
	for _, path := range paths {
		if _, ok := socket.ParseName(filepath.Base(path)); ok {
			t.Errorf("a daemon takes %s for the socket of a session", path)
		}
	}
	wantHosts(t, "two", base, "a", "b")
	wantHosts(t, "once more", base, "a", "b")
	stopA()
	wantHosts(t, "one has ended", base, "b")
	stopB()
	wantHosts(t, "both have", base)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 4 {
		t.Errorf("left are %v, %v; want the other files", left, err)
	}
}

// A socket without a listener is removed, and one with a listener is kept.
func TestLeftSocket(t *testing.T) {
	base, dir := shortBase(t)
	defer serveHost(t, base, "a")()
	left := filepath.Join(dir, "client-LEFT.sock")
	l, err := rundir.Listen(left)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	wantHosts(t, "beside a killed client", base, "a")
	if _, err := os.Lstat(left); !os.IsNotExist(err) {
		t.Errorf("the old socket: %v, want it removed", err)
	}
	wantHosts(t, "afterwards", base, "a")
}

// A reader that hangs delays neither other readers nor the end of the client. A client
// that hangs does not delay the list of others for much longer than askTimeout.
func TestHangingEnds(t *testing.T) {
	base, dir := shortBase(t)
	stop := serveHost(t, base, "a")
	paths, _ := filepath.Glob(filepath.Join(dir, "client-*.sock"))
	for range 10 {
		c, err := net.Dial("unix", paths[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	l, err := rundir.Listen(filepath.Join(dir, "client-99999999-HANGS-my-work.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	begun := time.Now()
	if _, err := askIn(base); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 5*askTimeout {
		t.Errorf("asked for %v", took)
	}
	wantHosts(t, "beside readers and a client that hang", base, "a")
	reports, err := askIn(base)
	silent := slices.IndexFunc(reports, func(r *Report) bool { return r.State == stateSilent })
	if err != nil || silent < 0 || reports[silent].PID != 99999999 || reports[silent].Session != "my-work" {
		t.Errorf("got %+v, %v; want the client that hangs", reports, err)
	}
	stop()
}

// A client that is stopped is named, and not waited for, where /proc tells that it is.
func TestStoppedClient(t *testing.T) {
	base, dir := shortBase(t)
	process := exec.Command("sh", "-c", "kill -STOP $$")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer process.Wait()
	defer process.Process.Kill()
	pid := process.Process.Pid
	for until := time.Now().Add(10 * askTimeout); !stopped(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Skip("no state of processes")
		}
	}
	l, err := rundir.Listen(filepath.Join(dir, fmt.Sprintf("client-%d-STOPPED-work.sock", pid)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for try := 1; ; try++ { // on a busy machine one may take longer
		begun := time.Now()
		reports, err := askIn(base)
		took := time.Since(begun)
		if err != nil || len(reports) != 1 || reports[0].State != stateStopped || reports[0].PID != pid || reports[0].Session != "work" {
			t.Fatalf("got %+v, %v", reports, err)
		}
		if took < askTimeout {
			return
		}
		if try == 5 {
			t.Fatalf("asked for %v", took)
		}
	}
}

// Other accounts get no answer.
func TestStatusForAnother(t *testing.T) {
	_, dir := shortBase(t)
	l, err := rundir.Listen(filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Lstat(filepath.Join(dir, "s")); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v; want it for its owner only", info.Mode(), err)
	}
	var asked atomic.Int32
	status := func() *Report { asked.Add(1); return New("a", client.Status{}, nil) }
	for _, test := range []struct {
		uid  uint32 // account of the client
		want bool
	}{{uint32(os.Geteuid()), true}, {uint32(os.Geteuid()) + 1, false}} {
		asked.Store(0)
		c, err := net.Dial("unix", filepath.Join(dir, "s"))
		if err != nil {
			t.Fatal(err)
		}
		served, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		answer(served, test.uid, status)
		b, err := io.ReadAll(c)
		if got := json.Valid(b); err != nil || got != test.want || !got && len(b) > 0 || asked.Load() > 0 != test.want {
			t.Errorf("user id %d of %d: got %q, %v; want an answer: %v", os.Geteuid(), test.uid, b, err, test.want)
		}
		c.Close()
	}
}

// Without a directory for sockets, there is an error.
func TestNoPlaceForSocket(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if stop, err := serveIn(rundir.Base(file), "", nil); err == nil {
		stop()
		t.Error("serves in a file")
	}
	wantHosts(t, "there", rundir.Base(file))
}
