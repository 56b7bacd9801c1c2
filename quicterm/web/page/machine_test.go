package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// A machine has a daemon and an account, with the programs of make build.
type machine struct {
	dir    string
	page   string // address of the daemon's page, for a proxy
	env    []string
	daemon *exec.Cmd

	mu  sync.Mutex
	log bytes.Buffer // of the daemon and its sessions
}

// Write takes a part of the log.
func (m *machine) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.Write(b)
}

// logText returns what the log has.
func (m *machine) logText() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.String()
}

// newMachine starts a daemon, which ends with the test and all of its sessions.
func newMachine(t *testing.T) *machine {
	bin, err := filepath.Abs(root + "/bin")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "p") // short, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{dir: dir}
	m.env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir+"/c", "XDG_STATE_HOME="+dir+"/state", "XDG_RUNTIME_DIR="+dir+"/x",
		"SHELL=/bin/sh", "PS1=$ ", "ENV=", "DISPLAY=", "WAYLAND_DISPLAY=")
	wrapper := "#!/bin/sh\nexec " + bin + "/qtd \"$@\" --config " + dir + "/qtd.toml\n"
	for name, content := range map[string]string{"qtd": wrapper, "authorized_keys": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"cp", bin + "/qt", dir + "/qt"}, // it finds the qtd beside it
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", dir + "/host_key"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
	}
	m.page = freeAddress(t)
	m.configure(t, freeAddress(t))
	m.start(t)
	t.Cleanup(func() {
		m.daemon.Process.Kill()
		m.daemon.Wait()
		m.endHolders(t)
	})
	return m
}

func (m *machine) configure(t *testing.T, address string) {
	settings := fmt.Sprintf("listen = [%q]\nruntime_dir = %q\nstate_dir = %q\nhost_key = [%q]\nauthorized_keys_files = [%q]\n"+
		"sshd_policy = \"ignore\"\ndetached_ttl = \"10m\"\nweb = %q\nweb_proxy = [\"127.0.0.1\"]\n",
		address, m.dir+"/r", m.dir+"/s", m.dir+"/host_key", m.dir+"/authorized_keys", m.page)
	if err := os.WriteFile(filepath.Join(m.dir, "qtd.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns one whose port no system gives to a socket that names none: the daemon comes back to it.
func freeAddress(t *testing.T) string {
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		stream, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		packets, err := net.ListenPacket("udp", address)
		stream.Close()
		if err == nil {
			packets.Close()
			return address
		}
		if t.Context().Err() != nil {
			t.Fatal("no port is free")
		}
	}
}

// start starts the daemon, and returns when it listens.
func (m *machine) start(t *testing.T) {
	t.Helper()
	m.daemon = exec.Command(m.dir+"/qtd", "serve")
	m.daemon.Env = m.env
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	m.daemon.Stderr = w // the holders have it too
	err = m.daemon.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.Contains(lines.Text(), "listening") {
			go func() {
				io.Copy(m, r)
				r.Close()
			}()
			return
		}
	}
	t.Fatalf("qtd does not start:\n%s", &all)
}

// run runs qt and returns what it prints.
func (m *machine) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(m.dir+"/qt", args...)
	cmd.Env = m.env
	out, err := cmd.Output()
	if err != nil {
		var complaint []byte
		if exit, ok := err.(*exec.ExitError); ok {
			complaint = exit.Stderr
		}
		t.Errorf("qt %s: %v\n%s", strings.Join(args, " "), err, complaint)
	}
	return string(out)
}

// endHolders ends the processes of all sessions, also of those that are over and wait for a page that is gone, to be told.
func (m *machine) endHolders(t *testing.T) {
	sockets, err := filepath.Glob(m.dir + "/r/*/*.sock")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sockets {
		c, err := net.Dial("unix", name)
		if err != nil {
			continue // it has ended
		}
		raw, err := c.(*net.UnixConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		raw.Control(func(fd uintptr) {
			if peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
				syscall.Kill(int(peer.Pid), syscall.SIGTERM)
			}
		})
		c.Close()
	}
}

// sessions returns the ids of the sessions that run.
func (m *machine) sessions(t *testing.T) (ids []string) {
	t.Helper()
	var listed []struct{ ID, State string }
	if err := json.Unmarshal([]byte(m.run(t, "ls", "--json")), &listed); err != nil {
		t.Fatal(err)
	}
	for _, s := range listed {
		if s.State == "attached" || s.State == "detached" {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// A relay is a qt web that runs.
type relay struct {
	cmd  *exec.Cmd
	file string // URL of the file that leads to its link
}

// web starts qt web, which ends with the test.
func (m *machine) web(t *testing.T, args ...string) *relay {
	t.Helper()
	cmd := exec.Command(m.dir+"/qt", append([]string{"web"}, args...)...)
	cmd.Env = m.env
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGCONT) // if a test has stopped it
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if file := regexp.MustCompile(`file://[^ ;]+`).FindString(lines.Text()); file != "" {
			go func() {
				for lines.Scan() {
					t.Log(lines.Text())
				}
			}()
			return &relay{cmd, file}
		}
	}
	t.Fatalf("qt web says\n%s", &said)
	return nil
}
