//go:build linux

package demo

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/topology"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
)

// link is the network of both interfaces: that of a phone, 80 ms there and back.
var link = netem.Config{Delay: 40 * time.Millisecond}

const (
	cols, rows = 80, 16

	// perKey is the time from a typed key to the next.
	perKey = 70 * time.Millisecond
)

// A recorder writes what a terminal shows.
type recorder struct {
	t      rig.T
	x      *rig.Terminal
	mu     sync.Mutex
	cast   *asciicast.Writer
	screen *screen.Screen
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.screen.Write(b)
	return len(b), r.cast.Output(time.Now(), b)
}

// caption marks what happens from now on.
func (r *recorder) caption(label string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.cast.Marker(time.Now(), label); err != nil {
		r.t.Fatal(err)
	}
}

// await waits until the last row that is not empty is as wanted.
func (r *recorder) await(row string) {
	for start := time.Now(); r.last() != row; time.Sleep(time.Millisecond) {
		if time.Since(start) > rig.Patience {
			r.t.Fatalf("waited for %q, got %q", row, r.last())
		}
	}
}

func (r *recorder) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for y := rows - 1; y >= 0; y-- {
		if row := r.screen.Row(y).Text(); row != "" {
			return row
		}
	}
	return ""
}

// typing types keys one by one.
func (r *recorder) typing(keys string) {
	for _, key := range keys {
		r.x.Send(string(key))
		pause(perKey)
	}
}

func (r *recorder) enter(line string) {
	r.typing(line)
	pause(4 * perKey)
	r.x.Send("\r")
}

// pause lets people see what happens.
func pause(d time.Duration) { time.Sleep(d) }

// Record types in a session between machines with two interfaces, which it takes down meanwhile, and
// writes what the client's terminal shows. It needs root.
func Record(t *measure.T, w io.Writer) {
	on := topology.NewNamespaces(t, topology.Options{Seed: 1, Interfaces: 2, DualStack: true})
	h := on.Host()
	h.Start()
	m := on.Machine(t, 0, link)
	wifi, mobile := m.Interface(0), m.Interface(1)

	// The laptop's shell has a qt that knows the host's keys and files. The session has a shell with
	// an empty home.
	client := h.To(m.Server, m.Port, "connect", []string{"-t"})
	h.Write("server.rc", `PS1='\[\e[32m\]anna@server\[\e[0m\]:\w$ '; HOME=`+h.Path("home")+"; cd\n")
	h.Write("home/build", "#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8; do echo step $i; sleep 0.5; done\necho all tests pass > log\necho built\n")
	h.Write("tools/qt", fmt.Sprintf("#!/bin/sh\nexec %s -p %d -t %s 'exec bash --rcfile %s'\n",
		filepath.Join(h.Bin, "qt")+" connect -F /dev/null", m.Port, m.Server, h.Path("server.rc")))
	h.Write("laptop.rc", fmt.Sprintf("stty cols %d rows %d; ", cols, rows)+`PS1='\[\e[36m\]laptop\[\e[0m\]:~$ '; HISTFILE=; PATH=`+h.Path("tools")+":$PATH\n")
	for _, program := range []string{"tools/qt", "home/build"} {
		if err := os.Chmod(h.Path(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	laptop := m.Namespace.In(exec.Command("bash", "--noprofile", "--rcfile", h.Path("laptop.rc")))
	laptop.Env = client.Env

	r := &recorder{t: t, screen: screen.New(cols, rows, screen.Limits{})}
	var err error
	r.cast, err = asciicast.NewWriter(w, asciicast.Header{Cols: cols, Rows: rows, Start: time.Now(), Term: "xterm-256color"})
	if err != nil {
		t.Fatal(err)
	}
	r.caption("WiFi")
	r.x = rig.Watch(t, laptop, r)
	const here, there = "laptop:~$", "anna@server:~$"
	r.await(here)
	pause(time.Second)
	r.enter("qt connect anna@server")
	r.await(there)
	pause(time.Second)

	// WiFi drops within a word.
	r.typing("echo typed while the Wi")
	wifi.Down()
	r.caption("WiFi is lost: mobile network")
	r.enter("Fi drops")
	r.await(there)
	pause(2 * time.Second)

	// Output waits for the end of the tunnel.
	r.enter("./build")
	r.await("step 3")
	mobile.Set(netem.Config{Down: true})
	r.caption("a tunnel: no network")
	pause(4 * time.Second)
	mobile.Set(link)
	r.caption("out of the tunnel: what was printed meanwhile arrives")
	r.await(there)
	pause(2 * time.Second)

	// Keys show although no answer can come.
	mobile.Set(netem.Config{Down: true})
	r.caption("another tunnel: typed keys show all the same")
	r.enter("tail -n 1 log")
	pause(2 * time.Second)
	wifi.Up()
	r.caption("WiFi is back")
	r.await(there)
	pause(time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.cast.Close(time.Now()); err != nil {
		t.Fatal(err)
	}
}
