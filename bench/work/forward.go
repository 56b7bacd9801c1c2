//go:build linux

package work

import (
	"io"
	"net"
	"slices"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
)

// Forward connects through one -L to a target on loopback that greets and echoes, and looks at the client, and at the daemon
// with the processes of the side pipe. It yields
//
//	opened       from the start of each of Times connections, one after the other, until the greeting comes
//	own memory   of each end, while Idle connections are open
//	descriptors  of each end, how many more after Short connections of a second time than after those of the first
//	own growth   the same of memory
type Forward struct {
	ownSessions
	Times, Idle, Short int
}

func (w Forward) Run(j *Job) []Figure {
	near, client, pipe := forward(j)
	ends := [][]int{{client}, append(pipe, j.Host.Processes()...)}
	j.Begin()
	defer j.End()
	opened := Figure{Metric: "opened", Unit: "ms"}
	for range w.Times {
		start := time.Now()
		c := greeted(j.T, near)
		opened.add(time.Since(start), j.since(start))
		c.Close()
	}
	if w.Short == 0 {
		return []Figure{opened}
	}
	var idle []net.Conn
	for range w.Idle {
		idle = append(idle, greeted(j.T, near))
	}
	memory, descriptors := Figure{Metric: "own memory", Unit: "MiB"}, Figure{Metric: "descriptors"}
	growth := Figure{Metric: "own growth", Unit: "MiB"}
	for _, pids := range ends {
		memory.Values = append(memory.Values, sum(j.T, pids, measure.Private)/(1<<20))
	}
	for _, c := range idle {
		c.Close()
	}
	for times := range 2 {
		for range w.Short / 50 {
			j.T.SideBySide(50, func(t *measure.T, _ int) { greeted(t, near).Close() })
		}
		for before := -1.0; ; time.Sleep(10 * Settle) { // until two looks find as many descriptors
			open := sum(j.T, slices.Concat(ends...), measure.Descriptors)
			if open == before {
				break
			}
			before = open
		}
		for i, pids := range ends {
			d, b := sum(j.T, pids, measure.Descriptors), sum(j.T, pids, measure.Private)/(1<<20)
			if times == 0 {
				descriptors.Values, growth.Values = append(descriptors.Values, -d), append(growth.Values, -b)
			} else {
				descriptors.Values[i] += d
				growth.Values[i] += b
			}
		}
	}
	return []Figure{opened, memory, descriptors, growth}
}

// SidePipe is Idle beside an unused side pipe. It yields "of a session": the side pipe's memory on the server, as a part of
// that of the job's session.
type SidePipe struct{ Idle }

func (w SidePipe) Run(j *Job) []Figure {
	session := holders(j)
	_, _, pipe := forward(j)
	figures := w.Idle.Run(j)
	return append(figures, one("of a session", "", sum(j.T, pipe, measure.Private)/sum(j.T, session, measure.Private)))
}

// forward returns the socket at which a client listens for connections that it forwards to a target, that client, and the
// processes of its side pipe. All end with the measurement.
func forward(j *Job) (near string, client int, pipe []int) {
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		j.T.Fatal(err)
	}
	j.T.Cleanup(func() { target.Close() })
	go greet(target)
	session, m := holders(j), j.Clients[0].Machine
	near = j.Host.Path("near")
	forwarding := rig.Watch(j.T, j.Host.To(m.Server, m.Port, "forward", []string{"-L", near + ":" + target.Addr().String()}), io.Discard)
	greeted(j.T, near).Close()
	return near, forwarding.Cmd.Process.Pid, holders(j, session...)
}

// sum adds what processes have.
func sum(t *measure.T, pids []int, of func(*measure.T, int) int) (sum float64) {
	for _, pid := range pids {
		sum += float64(of(t, pid))
	}
	return sum
}

// greet greets each connection, and sends back what comes.
func greet(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			io.WriteString(c, "!")
			io.Copy(c, c)
		}()
	}
}

// greeted connects as soon as something listens, and returns when the greeting has come.
func greeted(t *measure.T, path string) net.Conn {
	for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.SetDeadline(until)
			if _, err = io.ReadFull(c, make([]byte, 1)); err == nil {
				return c
			}
			c.Close()
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}
