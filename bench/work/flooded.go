//go:build linux

package work

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Flooded is typing before a flood, during it and after it, in all sessions except the last, whose
// machine is the one of newcomers: while the flood goes on, they log in, each from an address where
// nobody has logged in. It yields, in milliseconds:
//
//   - "quiet", from a key until the answer of the program is on the screen, without the flood;
//   - "truth", the same during the flood, and "of quiet", how many times its 99th percentile is that
//     of quiet;
//   - "login", of the newcomers, from the start of a client until its first prompt.
//
// Of the flood it yields "flood rate", packets or connections a second that were sent, and the shares
// of a core that its process and the daemon take meanwhile: "flood share" and "daemon share"; and what
// [daemonWatch] says.
type Flooded struct {
	ownSessions
	Flood  NetworkFlood
	Pace   time.Duration // from one key of a client to the next
	Keys   int           // of each client, for each of the three times
	Logins int
}

// A NetworkFlood is what strangers send from many addresses of a network of their own, which is joined to the
// daemon's by the kernel. What they do is one of floods. Their process has the lowest priority, as the CPU
// time that it takes would be that of other machines: "flood rate" says if it gets enough.
type NetworkFlood struct {
	What    string
	Sources int
	Rate    int // packets or connections a second
}

func (Flooded) Shell(self string) string { return Typing{}.Shell(self) }

func (w Flooded) Run(j *Job) []Figure {
	last := len(j.Clients) - 1
	newcomers := *j.Clients[last]
	newcomers.Terminal.Cmd.Process.Kill()
	j.Clients = j.Clients[:last]

	typing := Typing{Pace: w.Pace, Spans: Keys(w.Keys, w.Pace)}
	login := Figure{Metric: "login", Unit: "ms", Portable: true}
	daemon := j.Host.Processes()
	watch := watchDaemon(j.T, j.Host)
	j.Begin()
	quiet := j.truth(j.Clients, typing)
	quiet.Metric = "quiet"

	flood := w.Flood.start(j)
	time.Sleep(Settle)
	began, cpu := time.Now(), measure.CPUTime(j.T, daemon...)
	floodCPU := measure.CPUTime(j.T, flood.pid)
	truth := j.truth(j.Clients, typing)
	seconds := time.Since(began).Seconds()
	daemonShare := (measure.CPUTime(j.T, daemon...) - cpu).Seconds() / seconds
	floodShare := (measure.CPUTime(j.T, flood.pid) - floodCPU).Seconds() / seconds
	for range w.Logins {
		newcomers.Interface(0).Readdress()
		start := time.Now()
		login.add(newcomers.login(j.T).Sub(start), j.since(start))
	}
	sent, answered := flood.end(j.T)

	time.Sleep(Settle)
	after := j.truth(j.Clients, typing)
	quiet.Values, quiet.At = append(quiet.Values, after.Values...), append(quiet.At, after.At...)
	j.End()
	p99 := func(f Figure) float64 { return slices.Sorted(slices.Values(f.Values))[len(f.Values)*99/100] }
	of := one("of quiet", "x", p99(truth)/p99(quiet))
	of.Portable = true
	rate := one("flood rate", "/s", sent)
	rate.Note = fmt.Sprintf("%.0f a second are answered", answered)
	return append([]Figure{quiet, truth, of, login, rate,
		one("flood share", "%", 100*floodShare), one("daemon share", "%", 100*daemonShare)}, watch.figures()...)
}

// A runningFlood is the process of a flood.
type runningFlood struct {
	began time.Time
	pid   int
	in    io.Closer
	out   *bufio.Reader
}

// start starts the flood in a namespace of its own.
func (f NetworkFlood) start(j *Job) *runningFlood {
	server := j.Host.In.(*rig.Namespace)
	ns := rig.NewNamespace(j.T)
	here, there := ns.Name+"a", ns.Name+"b"
	rig.IP(j.T, "link", "add", here, "type", "veth", "peer", "name", there)
	ns.Take(here, "10.199.0.2/24")
	server.Take(there, "10.199.0.1/24")
	ns.Batch("route add local 10.200.0.0/16 dev lo", "route add default via 10.199.0.1") // all its addresses
	server.Batch("route add 10.200.0.0/16 via 10.199.0.2")

	account, err := user.Current()
	if err != nil {
		j.T.Fatal(err)
	}
	letStrangerIn(j.T, j.Host)
	const program = "flooder"
	b := startLowest(j.T, program, ns.In(exec.Command(Executable(j.T), program, f.What, j.Host.Addr.String(),
		fmt.Sprint(f.Sources), fmt.Sprint(f.Rate), account.Uid, someSession(j).String(), account.Username, j.Host.Path("id"))))
	return &runningFlood{began: time.Now(), pid: b.pid, in: b.in, out: b.out}
}

// end ends the flood, and returns how much it has sent, and how much was answered, a second. The daemon answers a
// part of each flood: one without any answer has not reached it.
func (f *runningFlood) end(t *measure.T) (sent, answered float64) {
	f.in.Close()
	seconds := time.Since(f.began).Seconds()
	line, err := f.out.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &sent, &answered)
	}
	if err != nil {
		t.Fatalf("the flood does not end: %v", err)
	}
	if answered == 0 {
		t.Fatalf("nothing of the flood is answered, of %.0f", sent)
	}
	return sent / seconds, answered / seconds
}

// someSession returns one of the job's sessions.
func someSession(j *Job) wire.SessionID {
	sockets, _ := filepath.Glob(j.Host.Path("run/*/*.sock"))
	for _, s := range sockets {
		if id, ok := holder.ParseSocketName(filepath.Base(s)); ok {
			return id
		}
	}
	j.T.Fatal("no session has a socket")
	return wire.SessionID{}
}
