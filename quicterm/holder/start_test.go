//go:build linux || darwin

package holder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/holder/program"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// No variable is inherited, not even if the launch has none.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET", "of the daemon")
	for _, env := range [][]string{nil, {}, {"A=1", "B=two words"}} {
		launch := wire.Launch{Path: "/usr/bin/env", Argv: []string{"env"}, Env: env, Dir: "/"}
		want := ""
		for _, v := range env {
			want += v + "\n"
		}
		w := running(t, launch)
		a := w.attach("a@x")
		if a.awaitExit(); a.output() != want {
			t.Errorf("environment %q: the program has %q", env, a.output())
		}
		got, _ := startHolder(t, launch)
		got, socket, _ := strings.Cut(got, wire.SocketVariable+"=") // which is added, as the last one
		if got != want || strings.Count(socket, "\n") != 1 {
			t.Errorf("environment %q: the program of a holder's process has %q", env, got)
		}
	}
}

// startHolder runs a session in a process of its own until it is over.
func startHolder(t *testing.T, launch wire.Launch) (output string, status byte) {
	t.Helper()
	launch.ID, launch.Name, launch.ExitedTTL, launch.PipeTTL = wire.SessionID{9}, "process", time.Minute, time.Minute
	launch.Base = filepath.Join(shortDir(t), "run")
	if _, err := spawn.Session(context.Background(), &launch, spawn.Process{}); err != nil {
		t.Fatal(err)
	}
	dir, err := rundir.Base(launch.Base).Make()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, h: &Holder{launch: launch}, path: filepath.Join(dir, socket.Name(launch.ID)), timeout: 20 * time.Second}
	defer w.wg.Wait()
	a := w.attach("a@x")
	status = a.awaitExit()
	a.awaitEnd()
	w.await("the holder's socket to go with it", func() bool {
		_, err := os.Lstat(w.path)
		return os.IsNotExist(err)
	})
	return a.output(), status
}

// A program that cannot run is reported in one line, and leaves nothing behind.
func TestProgramThatCannotStart(t *testing.T) {
	dir := shortDir(t)
	write := func(name, content string, mode os.FileMode) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for path, why := range map[string]string{
		filepath.Join(dir, "no-such"):                  "no such file or directory",
		write("not executable", "#!/bin/sh\n", 0o600):  "permission denied",
		write("no interpreter", "#!/no/such\n", 0o700): "no such file or directory",
		write("no program", "\x00\x01\x02", 0o700):     "exec format error",
		dir: "permission denied",
	} {
		both(t, func(t *testing.T, pty bool) {
			launch := shell(t, pty, "true")
			launch.Path = path
			launch.Base = filepath.Join(shortDir(t), "run")
			want := fmt.Sprintf("start %s: %s", path, why)
			if _, err := program.Start(&launch, nil); err == nil || err.Error() != want {
				t.Errorf("startProgram: %v, want %s", err, want)
			}
			if _, err := spawn.Session(context.Background(), &launch, spawn.Process{}); err == nil || err.Error() != want {
				t.Errorf("Start: %v, want %s", err, want)
			}
			w := &world{t: t, timeout: 20 * time.Second}
			w.await("the socket to go", func() bool {
				left, err := filepath.Glob(filepath.Join(launch.Base, "*", "*"))
				return err == nil && len(left) == 0
			})
		})
	}
}

// A session in a process of its own has what a login has: a terminal as requested, and
// nothing of the daemon.
func TestHolderProcess(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	// As a shell does it that runs us with a lock or a pipe.
	inherited, err := unix.Dup(int(w.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	script := fmt.Sprintf("stty size; test -t 0 && test -t 1 && test -t 2 && echo tty; umask; pwd; test -e /dev/fd/%d && echo leaked; kill -s USR1 $$", inherited)
	launch := shell(t, true, script)
	launch.Size = wire.Size{Cols: 93, Rows: 17}
	out, status := startHolder(t, launch)
	want := "17 93\r\ntty\r\n0022\r\n" + launch.Dir + "\r\n"
	if out != want || status != byte(128+int(syscall.SIGUSR1)) {
		t.Errorf("status %d, output %q, want %q", status, out, want)
	}
}

// A program that ignores the arguments of a daemon's children starts no children as such a
// child.
func TestChildStartsNoHolder(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	for _, command := range []string{spawn.Command, "read-keys"} {
		os.Args = []string{"qtd", command, "more"}
		launch := shell(t, false, "true")
		launch.Base = filepath.Join(shortDir(t), "run")
		if pid, err := spawn.Session(context.Background(), &launch, spawn.Process{}); pid != 0 || err == nil || !strings.Contains(err.Error(), "its argument "+command) {
			t.Errorf("%s: process %d, %v", command, pid, err)
		}
	}
}

// Start returns when its context ends.
func TestStartGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	launch := shell(t, false, "sleep 1000")
	launch.Base = filepath.Join(shortDir(t), "run")
	if _, err := spawn.Session(ctx, &launch, spawn.Process{}); err == nil {
		t.Error("no error")
	}
}

// openStuck is what the test's executable does in place of opening a session of PAM: it writes to a file, and
// never ends by itself.
func openStuck(file string) {
	err := syscall.Exec("/bin/sh", []string{"sh", "-c", `echo waits >"$0"; exec sleep 1000`, file}, nil)
	panic(err)
}
