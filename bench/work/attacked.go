//go:build linux

package work

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Attacked does a work while an attack goes on. Beside the work's figures it yields what
// the attack costs the daemon, as [daemonWatch] says.
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

// An Attack is what hostile clients or accounts do to a daemon.
type Attack interface {
	// Start starts the attack, and returns when it is at its worst. The attack ends with
	// the measurement.
	Start(t *measure.T, h *rig.Host)
}

func (w Attacked) Run(j *Job) []Figure {
	watch := watchDaemon(j.T, j.Host)
	w.Attack.Start(j.T, j.Host)
	figures := w.Work.Run(j)
	return append(figures, watch.figures()...)
}

// startAttackers starts one of Programs, which writes a line when the attack is at its worst.
func startAttackers(t *measure.T, program string, a attackers, args ...string) {
	startBeside(t, program, append(a.args(), args...)...)
}

// A beside is a process beside those that are measured.
type beside struct {
	pid int
	in  io.WriteCloser
	out *bufio.Reader
}

// startBeside starts one of Programs, and returns when it has written a line.
func startBeside(t *measure.T, program string, args ...string) *beside {
	return startLowest(t, program, exec.Command(Executable(t), append([]string{program}, args...)...))
}

// startLowest is startBeside for a program that is started by a command. All its threads, and its session,
// have the lowest priority: its CPU time, which would be that of other machines, is not taken from the
// daemon. It ends with the measurement.
func startLowest(t *measure.T, program string, cmd *exec.Cmd) *beside {
	const lowest = "19"
	b := start(t, exec.Command("nice", append([]string{"-n", lowest}, cmd.Args...)...))
	// Priorities count within a session only where the system groups by sessions: sched(7).
	group := fmt.Sprintf("/proc/%d/autogroup", b.pid)
	if err := os.WriteFile(group, []byte(lowest), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	b.await(t, program)
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

// await waits until the process has written a line.
func (b *beside) await(t *measure.T, program string) {
	if _, err := b.out.ReadString('\n'); err != nil {
		t.Fatalf("%s does not begin: %v", program, err)
	}
}

// attackers are clients of a daemon at several addresses.
type attackers struct {
	server      string
	sources     int // addresses 127.0.x.y
	connections int // of all sources together
}

// args are the arguments of Programs.
func (a attackers) args() []string {
	return []string{a.server, fmt.Sprint(a.sources), fmt.Sprint(a.connections)}
}

// attack keeps connections, and calls use with each. Who is refused or loses the connection
// connects again. It writes a line when each connection was tried once, and returns when standard input ends.
func (a attackers) attack(w io.Writer, use func(c *quic.Conn)) {
	server := netip.MustParseAddrPort(a.server)
	var tried atomic.Int64
	for n := range a.connections {
		source := net.IPv4(127, 0, byte(1+n%a.sources/250), byte(1+n%a.sources%250))
		go func() {
			for first := true; ; first = false {
				c, err := dialFrom(source, server)
				if first && tried.Add(1) == int64(a.connections) {
					fmt.Fprintln(w, "tried")
				}
				if err == nil {
					use(c)
					c.Close()
				}
				time.Sleep(time.Second)
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
}

// dialFrom connects from a source.
func dialFrom(source net.IP, server netip.AddrPort) (*quic.Conn, error) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: source})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}}
	return quic.Dial(ctx, &quic.Socket{UDPConn: socket}, server, conf)
}

// Silent is an attack by strangers who connect and send nothing.
type Silent struct {
	Sources     int // addresses 127.0.x.y
	Connections int // of all sources together
}

func (s Silent) Start(t *measure.T, h *rig.Host) {
	startAttackers(t, "silent", attackers{h.Addr.String(), s.Sources, s.Connections})
}

// silent is what each client of the attack Silent does.
func silent(c *quic.Conn) { <-c.Context().Done() }
