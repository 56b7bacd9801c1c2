//go:build linux || darwin

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	_ "github.com/quicterm/quicterm/bench/bubble"
	"github.com/quicterm/quicterm/bench/rig"
)

func TestMain(m *testing.M) {
	const name = "qt"
	if filepath.Base(os.Args[0]) != name {
		if status, ok := rig.WithoutStartupFiles(); ok {
			os.Exit(status)
		}
		runMore()
	}
	testscript.Main(m, map[string]func(){name: main})
}

// Each script has its own directories, qt and qtd in PATH, and a daemon that is started
// on demand. Paths must be short: the directories hold sockets. The scripts of programs drive a session with one
// that no one here wrote, and are skipped where it is not installed.
func TestScripts(t *testing.T) {
	root, err := os.MkdirTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	qtd := filepath.Join(root, "real-qtd")
	if out, err := exec.Command("go", "build", "-o", qtd, "../qtd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob("testdata/programs/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:       append(scripts, programs...),
		WorkdirRoot: root,
		Condition: func(name string) (bool, error) {
			if name != "root" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return os.Geteuid() == 0, nil
		},
		Setup: func(env *testscript.Env) error {
			// SHLVL keeps a login shell that is bash from reading the account's .bashrc.
			const environ = `["TERM", "SHLVL"]`
			own := filepath.Join(env.WorkDir, "config", "quicterm")
			err := os.MkdirAll(own, 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(own, "qt.toml"), []byte("send_env = "+environ+"\n"), 0o600)
			}
			if err != nil {
				return err
			}
			config := filepath.Join(env.WorkDir, "qtd.toml")
			// A small buffer, as scripts print all that there is of an endless output.
			settings := fmt.Sprintf("runtime_dir = %q\nstate_dir = %q\ndetached_ttl = \"10m\"\naccept_env = %s\n"+
				"buffer_size = \"2MiB\"\n",
				filepath.Join(env.WorkDir, "r"), filepath.Join(env.WorkDir, "s"), environ)
			if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
				return err
			}
			wrapper := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" --config %s\n", qtd, config)
			bin := filepath.Join(env.WorkDir, "bin")
			if err := os.Mkdir(bin, 0o700); err != nil {
				return err
			}
			// A child of another script must not inherit it: what is open for writing cannot run.
			syscall.ForkLock.RLock()
			err = os.WriteFile(filepath.Join(bin, "qtd"), []byte(wrapper), 0o700)
			syscall.ForkLock.RUnlock()
			if err != nil {
				return err
			}
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("TERM", "xterm")
			env.Setenv("SHLVL", "1")
			env.Setenv("T", "--timeout=1m")
			env.Defer(func() {
				sockets := filepath.Join(env.WorkDir, "r")
				endDaemon(sockets)
				if err := rig.EndSessions(filepath.Join(sockets, "*", "*.sock")); err != nil {
					t.Error(err)
				}
			})
			return nil
		},
	})
}

// runMore makes four times as many scripts run at once as usual: most of the time they wait.
func runMore() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}

// endDaemon ends the daemon whose sockets are in a directory.
func endDaemon(dir string) {
	locks, _ := filepath.Glob(filepath.Join(dir, "*", "qtd.lock"))
	for _, lock := range locks {
		f, err := os.Open(lock)
		if err != nil {
			continue
		}
		defer f.Close()
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			continue // it has ended, and the number may be that of any process by now
		}
		var pid int
		fmt.Fscan(f, &pid)
		if p, err := os.FindProcess(pid); err == nil && pid > 1 {
			p.Signal(os.Interrupt)
		}
	}
}
