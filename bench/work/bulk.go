//go:build linux

package work

import (
	"io"
	"net"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/topology"
)

// Bulk copies random bytes from the server over a session without a terminal. It yields "rate", in
// Mbit/s of the bytes that arrive, from the first one on.
type Bulk struct {
	ownSessions
	Size  int
	Times int
}

func (w Bulk) Run(j *Job) []Figure {
	file := randomFile(j.T, w.Size)
	rate := Figure{Metric: "rate", Unit: "Mbit/s", Portable: true}
	j.Begin()
	for range w.Times {
		rate.Values = append(rate.Values, 8*pipeRate(j.T, pipeTo(j, "cat "+file))/1e6)
	}
	j.End()
	return []Figure{rate}
}

// BesideTCP copies random bytes as Bulk does, while one TCP connection sends as much as it can over
// the same link. It yields "tcp share", the part of the bytes that TCP brings while both send, and
// "rate", in Mbit/s of all that arrives meanwhile, with headers.
type BesideTCP struct {
	ownSessions
	First time.Duration // how long the copy is alone
	Share time.Duration // how long both send before it counts
	Lasts time.Duration // how long it counts
}

func (w BesideTCP) Run(j *Job) []Figure {
	share := Figure{Metric: "tcp share", Portable: true}
	rate := Figure{Metric: "rate", Unit: "Mbit/s", Portable: true}
	cmd := pipeTo(j, "cat /dev/urandom")
	copied := new(byteCounter)
	cmd.Stdout = copied
	j.Begin()
	if err := cmd.Start(); err != nil {
		j.T.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	time.Sleep(w.First)
	rival := startTCP(j)
	time.Sleep(w.Share)
	copiedBefore, rivalBefore, allBefore := copied.Load(), rival.Load(), j.Clients[0].Received()
	time.Sleep(w.Lasts)
	ours, theirs := float64(copied.Load()-copiedBefore), float64(rival.Load()-rivalBefore)
	rate.Values = []float64{8 * float64(j.Clients[0].Received()-allBefore) / w.Lasts.Seconds() / 1e6}
	j.End()
	cmd.Process.Kill()
	<-ended
	if ours == 0 {
		share.Never = "nothing is copied"
	}
	share.Values = []float64{theirs / (ours + theirs)}
	return []Figure{share, rate}
}

// pipeTo returns a command of sh on the server whose output the first client gets without a terminal.
func pipeTo(j *Job, shell string) *exec.Cmd {
	server, ok := j.Server.(program.Piper)
	if !ok {
		j.T.Fatal("it has no sessions without a terminal")
	}
	m := j.Clients[0].Machine
	return m.Namespace.In(server.Pipe(m, shell))
}

// startTCP starts a TCP connection that brings the first client as much as it can, and counts that.
// It ends with the measurement.
func startTCP(j *Job) *byteCounter {
	const port = "2223"
	server := j.Host.In.(*rig.Namespace)
	listener := rig.Inside(server, func() (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort(topology.ServerIP, port))
	})
	j.T.Cleanup(func() { listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 64<<10)
		for err == nil {
			_, err = c.Write(b)
		}
	}()
	conn := rig.Inside(j.Clients[0].Namespace, func() (net.Conn, error) {
		return net.DialTimeout("tcp", listener.Addr().String(), rig.Patience)
	})
	j.T.Cleanup(func() { conn.Close() })
	count := new(byteCounter)
	go io.Copy(count, conn)
	return count
}

// A byteCounter counts the bytes that are written to it.
type byteCounter struct{ atomic.Int64 }

func (b *byteCounter) Write(p []byte) (int, error) {
	b.Add(int64(len(p)))
	return len(p), nil
}
