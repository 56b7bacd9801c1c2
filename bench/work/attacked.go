//go:build linux

package work

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Attacked does a work while an attack goes on.
type Attacked struct {
	Attack Attack
	Work
}

// OwnSessions implements [OwnSessions]: what the job's sessions cost includes the attack.
func (Attacked) OwnSessions() {}

// An Attack is what hostile clients or accounts do to a daemon.
type Attack interface {
	// Start starts the attack, and returns when it is at its worst. The attack ends with
	// the measurement.
	Start(t *measure.T, h *rig.Host)
}

func (w Attacked) Run(j *Job) []Figure {
	w.Attack.Start(j.T, j.Host)
	return w.Work.Run(j)
}

// Silent is an attack by strangers who connect and send nothing. Who is refused or loses
// the connection connects again. They are a process of the lowest priority: an attacker's
// CPU time is not taken from the daemon.
type Silent struct {
	Sources     int // addresses 127.0.x.y
	Connections int // of all sources together
}

func (a Silent) Start(t *measure.T, h *rig.Host) {
	cmd := exec.Command(Executable(t), "silent", h.Addr.String(), fmt.Sprint(a.Sources), fmt.Sprint(a.Connections))
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
	const lowest = 19
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, lowest); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the attack does not begin: %v", err)
	}
}

// silent is the process of the attack Silent. It writes a line when each connection was
// tried once.
func silent(w io.Writer, server netip.AddrPort, sources, connections int) error {
	var tried atomic.Int64
	var wg sync.WaitGroup
	for n := range connections {
		source := net.IPv4(127, 0, byte(1+n%sources/250), byte(1+n%sources%250))
		wg.Go(func() {
			for first := true; ; first = false {
				hold(server, source)
				if first && tried.Add(1) == int64(connections) {
					fmt.Fprintln(w, "tried")
				}
				time.Sleep(time.Second)
			}
		})
	}
	wg.Wait()
	return nil
}

// hold connects from a source, and waits until the connection ends.
func hold(server netip.AddrPort, source net.IP) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: source})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}}
	conn, err := quic.Dial(ctx, &quic.Socket{UDPConn: socket}, server, conf)
	if err != nil {
		return
	}
	defer conn.Close()
	<-conn.Context().Done()
}
