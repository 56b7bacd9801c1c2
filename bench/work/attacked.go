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
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/auth"
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

// An Attack is what connections from many addresses do to a daemon until the measurement ends. Those that are
// refused or lost are made again.
type Attack struct {
	What        string // a name in attacks
	Sources     int    // addresses 127.0.x.y
	Connections int    // of all sources together
	Sockets     int    // of a hostile account
}

// attacks are what each connection does, by the name of an attack. The connection is closed afterwards.
var attacks = map[string]func(c *quic.Conn, key *auth.UserKey, number int64){
	// A stranger who connects and sends nothing.
	"silent": func(c *quic.Conn, _ *auth.UserKey, _ int64) { <-c.Context().Done() },

	// A client that logs in to an account whose home does not answer: that of [program.HungHome].
	"hung": func(c *quic.Conn, _ *auth.UserKey, _ int64) {
		c.Write(append(message(&wire.Hello{User: program.Stranger, Keys: [][]byte{[]byte("key")}}), message(&wire.List{})...))
		<-c.Context().Done()
	},

	// An account, [program.Stranger], that may log in. Its directory is full of sockets whose holders answer with
	// as much as a message may have. Its connections ask for listings: a few at once again after each answer, on the
	// others there is as much behind the request as the daemon takes.
	"hostile": func(c *quic.Conn, key *auth.UserKey, number int64) {
		const listers = 25 // one of so many connections lists without end
		list(c, key, number%listers == 0)
	},
}

// start starts the attack, and returns when it is at its worst.
func (a Attack) start(t *measure.T, h *rig.Host) {
	args := []string{a.What, h.Addr.String(), fmt.Sprint(a.Sources), fmt.Sprint(a.Connections), fmt.Sprint(a.Sockets), h.Path("id")}
	if a.Sockets > 0 {
		letStrangerIn(t, h)
		dir := h.Path(fmt.Sprintf("run/%d", program.StrangerUID))
		for _, err := range []error{os.Mkdir(dir, 0o700), os.Chown(dir, program.StrangerUID, program.StrangerUID)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, dir)
	}
	startBeside(t, "attacker", args...)
}

func (w Attacked) Run(j *Job) []Figure {
	watch := watchDaemon(j.T, j.Host)
	w.Attack.start(j.T, j.Host)
	figures := w.Work.Run(j)
	return append(figures, watch.figures()...)
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

// run is the process of an attack. It writes a line when each connection was tried once, and returns when standard
// input ends. With sockets, it begins as root and continues as the account; identity has the key that this accepts.
func (a Attack) run(w io.Writer, address, identity, dir string) error {
	use, ok := attacks[a.What]
	if !ok {
		return fmt.Errorf("no attack is called %q", a.What)
	}
	server, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	key, err := auth.IdentityFile(identity, nil)
	if err == nil && a.Sockets > 0 {
		err = fakeHolders(dir, a.Sockets)
	}
	if err != nil {
		return err
	}
	var tried, number atomic.Int64
	for n := range a.Connections {
		source := net.IPv4(127, 0, byte(1+n%a.Sources/250), byte(1+n%a.Sources%250))
		go func() {
			for first := true; ; first = false {
				c, err := dialFrom(source, server)
				if first && tried.Add(1) == int64(a.Connections) {
					fmt.Fprintln(w, "tried")
				}
				if err == nil {
					use(c, key, number.Add(1))
					c.Close()
				}
				time.Sleep(time.Second)
			}
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	return nil
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
