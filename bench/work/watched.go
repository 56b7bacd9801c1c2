//go:build linux

package work

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/rig"
	qtclient "github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Watched shows a long file of text, in turn in a session that nobody watches and in one
// with watchers, the last of which is stopped by SIGSTOP. It yields "rate", in MB of the file
// a second until the prompt is there again in the watched session; "of alone", its share of
// the rate in the other; and "watchers rss", MiB by which the resident memory of the
// watched session's holder is larger than that of the other's.
//
// Those who watch are clients in one process of the lowest priority, except the stopped one,
// which is qt: what counts is the CPU time of the daemon and the holder for them. When the output
// is over, all that are not stopped must have its end.
type Watched struct {
	ownSessions
	Watchers int
	Size     int // bytes
	Times    int
}

// watchedName is the name of the watched session.
const watchedName = "watched"

func (w Watched) Run(j *Job) []Figure {
	const limit = time.Minute // for each time
	file, _ := logFile(j.T, w.Size)
	alone := j.Clients[0]
	aloneHolder := holders(j)[0]
	flags := []string{"-t", "-s", watchedName}
	watched := NewClient(1, alone.Machine, j.Host.To(alone.Server, alone.Port, "connect", flags, w.Shell("")))
	watched.Start(j.T)
	watched.AwaitReady(j.T)
	watchedHolder := holders(j, aloneHolder)[0]
	before := measure.RSS(j.T, watchedHolder)

	others := startWatchers(j.T, j.Host, w.Watchers-1)
	stopped := rig.Open(j.T, j.Host.To(alone.Server, alone.Port, "watch", nil, watchedName))
	stopped.Expect(readyMark)
	stopped.Cmd.Process.Signal(syscall.SIGSTOP)
	j.T.Cleanup(func() { stopped.Cmd.Process.Signal(syscall.SIGCONT) })

	rate := Figure{Metric: "rate", Unit: "MB/s"}
	share := Figure{Metric: "of alone", Unit: "x", Portable: true}
	cat := func(c *Client, n int) float64 {
		typed, shown := c.answer("cat "+file+"\r", mark(n+2), limit)
		if shown.IsZero() {
			j.T.Fatalf("no prompt within %v", limit)
		}
		return float64(w.Size) / shown.Sub(typed).Seconds() / 1e6
	}
	j.Begin()
	for n := range w.Times {
		speed := cat(alone, n)
		rate.Values = append(rate.Values, cat(watched, n))
		others.await(j.T, mark(n+2))
		share.Values = append(share.Values, rate.Values[n]/speed)
	}
	j.End()
	const mib = 1 << 20
	ofWatched := float64(measure.RSS(j.T, watchedHolder)) / mib
	ofAlone := float64(measure.RSS(j.T, aloneHolder)) / mib
	memory := one("watchers rss", "MiB", ofWatched-ofAlone)
	memory.Note = fmt.Sprintf("the watched session's holder has %.1f MiB before the output and "+
		"%.1f after it, that of the other session %.1f", float64(before)/mib, ofWatched, ofAlone)
	share.Note = others.received
	return []Figure{rate, share, memory}
}

// holders returns the processes that hold sessions, except some.
func holders(j *Job, except ...int) []int {
	except = append(except, j.Host.Processes()...)
	return slices.DeleteFunc(j.Server.Processes(j.T), func(pid int) bool { return slices.Contains(except, pid) })
}

// watchers is a process with clients that watch.
type watchers struct {
	ask      io.Writer
	answers  *bufio.Reader
	received string // what they say of it
}

// startWatchers starts watchers, and returns when they have attached.
func startWatchers(t *measure.T, h *rig.Host, n int) *watchers {
	b := startBeside(t, nil, "watchers", h.Addr.String(), h.Dir, strconv.Itoa(n))
	return &watchers{ask: b.in, answers: b.out}
}

// await waits until the output of all watchers ends with a mark.
func (w *watchers) await(t *measure.T, mark string) {
	fmt.Fprintln(w.ask, mark)
	line, err := w.answers.ReadString('\n')
	if err != nil {
		t.Fatalf("a watcher does not get the end of the output: %v", err)
	}
	w.received = strings.TrimSpace(line)
}

// watch is the process of the watchers: clients of a daemon, with the key in a folder. For each
// mark that it reads it writes a line when the output of all of them ends with it.
func watch(in io.Reader, out io.Writer, address, dir string, n int) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	all := make([]*lastOutput, n)
	failed := make(chan error, n+1)
	for i := range all {
		client, err := LibraryClient(addr, dir)
		if err != nil {
			return err
		}
		all[i] = newLastOutput()
		s, err := client.Attach(ctx, &wire.Attach{
			Mode: wire.ModeAttach, Session: watchedName, PTY: true, Role: wire.RoleWatch,
			Replay: wire.Replay{Kind: wire.ReplayScreen, Lines: 1000},
		}, all[i].streams())
		if err != nil {
			return fmt.Errorf("watcher %d: %w", i, err)
		}
		go func() {
			_, err := s.Run(ctx)
			failed <- err
		}()
	}
	go func() {
		failed <- answerMarks(in, out, all)
	}()
	return <-failed
}

// answerMarks is the part of watch that reads and writes.
func answerMarks(in io.Reader, out io.Writer, all []*lastOutput) error {
	if _, err := fmt.Fprintln(out, "attached"); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		bytes, snapshots := 0, 0
		for i, l := range all {
			if !l.await(lines.Bytes(), rig.Patience) {
				return fmt.Errorf("watcher %d has %q", i, l.end)
			}
			bytes += l.received
			snapshots += l.snapshots
		}
		fmt.Fprintf(out, "%d watchers have received %d MB and %d snapshots\n", len(all), bytes/1e6, snapshots)
	}
	return nil
}

// A lastOutput keeps the end of what a watcher gets.
type lastOutput struct {
	mu                  sync.Mutex
	changed             *sync.Cond
	end                 []byte
	received, snapshots int
	late                bool
}

func newLastOutput() *lastOutput {
	l := new(lastOutput)
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *lastOutput) streams() qtclient.Streams {
	snapshot := func(b []byte) {
		l.mu.Lock()
		l.snapshots++
		l.mu.Unlock()
		l.Write(b)
	}
	return qtclient.Streams{Stdout: l, Began: snapshot, Lost: func(g qtclient.Gap) { snapshot(g.Snapshot) }}
}

func (l *lastOutput) Write(b []byte) (int, error) {
	const kept = 8 << 10 // bytes: more than the rows of a screen
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received += len(b)
	l.end = append(l.end, b...)
	l.end = append(l.end[:0], l.end[max(0, len(l.end)-kept):]...)
	l.changed.Broadcast()
	return len(b), nil
}

// await reports whether the end has a mark within a time.
func (l *lastOutput) await(mark []byte, limit time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = false
	timer := time.AfterFunc(limit, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.late = true
		l.changed.Broadcast()
	})
	defer timer.Stop()
	for !bytes.Contains(l.end, mark) && !l.late {
		l.changed.Wait()
	}
	return !l.late
}
