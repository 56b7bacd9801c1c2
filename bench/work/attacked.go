//go:build linux

package work

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Attacked does a work while an attack goes on. Beside the work's figures it yields what
// the attack costs the daemon, as [daemonWatch] says, and of a flood "flood rate", what it has sent a second.
type Attacked struct {
	Attack Attack
	Work
}

// OwnSessions implements [OwnSessions]: what the job's sessions cost includes the attack.
func (Attacked) OwnSessions() {}

// Calm returns a work without the attack on it, if there is one.
func Calm(w Work) Work {
	if attacked, ok := w.(Attacked); ok {
		return attacked.Work
	}
	return w
}

func (w Attacked) Run(j *Job) []Figure {
	watch := watchDaemon(j.T, j.Host)
	attack := w.Attack.start(j)
	began := time.Now()
	figures := append(w.Work.Run(j), watch.figures()...)
	if w.Attack.Rate > 0 {
		figures = append(figures, floodRate(j.T, attack, began))
	}
	return figures
}

// An Attack is what strangers, or a hostile account, do to a daemon from many addresses until the measurement ends.
type Attack struct {
	What    string // a name in attacks or in floods
	Sources int    // addresses

	// Of attacks: those that are refused or lost are made again.
	Connections int // of all sources together
	Sockets     int // of a hostile account

	// Of floods, which come from a network of their own that the kernel joins to the daemon's. Their process has the
	// lowest priority: "flood rate" says if it gets enough CPU time.
	Rate int // packets or connections a second
}

// start starts the attack, and returns when it is at its worst.
func (a Attack) start(j *Job) *beside {
	account, err := user.Current()
	if err != nil {
		j.T.Fatal(err)
	}
	if a.Rate > 0 || a.Sockets > 0 {
		letStrangerIn(j.T, j.Host)
	}
	dir, session := "-", "-"
	if a.Sockets > 0 {
		dir = j.Host.Path(fmt.Sprintf("run/%d", program.StrangerUID))
		err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, program.StrangerUID, program.StrangerUID))
		if err != nil {
			j.T.Fatal(err)
		}
	}
	var ns *rig.Namespace
	if a.Rate > 0 {
		ns, session = floodNetwork(j), someSession(j).String()
	}
	b := startBeside(j.T, ns, "attacker", a.What, j.Host.Addr.String(), fmt.Sprint(a.Sources), fmt.Sprint(a.Connections),
		fmt.Sprint(a.Sockets), fmt.Sprint(a.Rate), account.Uid, account.Username, session, j.Host.Path("id"), dir)
	if a.Rate > 0 {
		time.Sleep(Settle)
	}
	return b
}

// floodNetwork returns a network that is joined to the daemon's, with all addresses of floods.
func floodNetwork(j *Job) *rig.Namespace {
	server := j.Host.In.(*rig.Namespace)
	ns := rig.NewNamespace(j.T)
	here, there := ns.Name+"a", ns.Name+"b"
	rig.IP(j.T, "link", "add", here, "type", "veth", "peer", "name", there)
	ns.Take(here, "10.199.0.2/24")
	server.Take(there, "10.199.0.1/24")
	ns.Batch("route add local 10.200.0.0/16 dev lo", "route add default via 10.199.0.1")
	server.Batch("route add 10.200.0.0/16 via 10.199.0.2")
	return ns
}

// someSession returns one of the job's sessions.
func someSession(j *Job) wire.SessionID {
	sockets, _ := filepath.Glob(j.Host.Path("run/*/*.sock"))
	for _, s := range sockets {
		if id, ok := socket.ParseName(filepath.Base(s)); ok {
			return id
		}
	}
	j.T.Fatal("no session has a socket")
	return wire.SessionID{}
}

// floodRate ends a flood, and returns how much it has sent a second. The daemon answers a part of each flood: one
// without any answer has not reached it.
func floodRate(t *measure.T, flood *beside, began time.Time) Figure {
	flood.in.Close()
	seconds := time.Since(began).Seconds()
	var sent, answered float64
	line, err := flood.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &sent, &answered)
	}
	if err != nil {
		t.Fatalf("the flood does not end: %v", err)
	}
	if answered == 0 {
		t.Fatalf("nothing of the flood is answered, of %.0f", sent)
	}
	rate := one("flood rate", "/s", sent/seconds)
	rate.Note = fmt.Sprintf("%.0f a second are answered", answered/seconds)
	return rate
}

// Newcomers is typing in all sessions except the last, on whose machine newcomers log in then, each from an address
// where nobody has logged in. It yields, in milliseconds, "truth" as [Typing] does, and "login", from the start of a
// newcomer's client until its first prompt.
type Newcomers struct {
	Typing Typing
	Logins int
}

func (Newcomers) OwnSessions()               {}
func (w Newcomers) Shell(self string) string { return w.Typing.Shell(self) }

func (w Newcomers) Run(j *Job) []Figure {
	last := len(j.Clients) - 1
	newcomers := *j.Clients[last]
	newcomers.Terminal.Cmd.Process.Kill()
	j.Clients = j.Clients[:last]
	login := Figure{Metric: "login", Unit: "ms", Portable: true}
	j.Begin()
	truth := j.truth(j.Clients, w.Typing)
	for range w.Logins {
		newcomers.Interface(0).Readdress()
		start := time.Now()
		login.add(newcomers.login(j.T).Sub(start), j.since(start))
	}
	j.End()
	return []Figure{truth, login}
}

// A beside is a process beside those that are measured.
type beside struct {
	pid int
	in  io.WriteCloser
	out *bufio.Reader
}

// startBeside starts one of Programs, in a namespace unless that is nil, and returns when it has written a line. All
// its threads, and its session, have the lowest priority: its CPU time, which would be that of other machines, is not
// taken from the daemon. It ends with the measurement.
func startBeside(t *measure.T, ns *rig.Namespace, program string, args ...string) *beside {
	cmd := exec.Command(Executable(t), append([]string{program}, args...)...)
	if ns != nil {
		cmd = ns.In(cmd)
	}
	const lowest = "19"
	b := start(t, exec.Command("nice", append([]string{"-n", lowest}, cmd.Args...)...))
	// Priorities count within a session only where the system groups by sessions: sched(7).
	group := fmt.Sprintf("/proc/%d/autogroup", b.pid)
	if err := os.WriteFile(group, []byte(lowest), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := b.out.ReadString('\n'); err != nil {
		t.Fatalf("%s does not begin: %v", program, err)
	}
	return b
}

// start starts a process, which ends with the measurement.
func start(t *measure.T, cmd *exec.Cmd) *beside {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe() // it ends with this process
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &beside{cmd.Process.Pid, in, bufio.NewReader(out)}
}
