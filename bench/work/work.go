//go:build linux

// Package work is what people and programs do in the sessions of a scenario, and what is
// measured of it: typing, output, Ctrl-C, connecting, rest.
package work

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/bench/screen"
	"github.com/quicterm/quicterm/bench/topology"
)

// Settle is how long a new session is left alone before something happens to it.
const Settle = time.Second

// A Work is done in all sessions of a job.
type Work interface {
	// Shell returns the command of sh that each session runs. Its terminal shows
	// readyMark when it is ready. Self is the path of this program, which runs Programs.
	Shell(self string) string

	// Run does the work when all sessions are ready and their links are the scenario's.
	// It warms up, calls Begin, works, and calls End.
	Run(j *Job) []Figure
}

// OwnSessions is implemented by works that use other sessions than those of the job. What
// the job's sessions cost says nothing about such a work.
type OwnSessions interface{ OwnSessions() }

type ownSessions struct{ shell }

func (ownSessions) OwnSessions() {}

// A Figure is what was measured of one metric.
type Figure struct {
	Metric   string
	Unit     string
	Values   []float64
	At       []float64 // when each began, seconds since Begin; or nothing
	Portable bool      // comparable between machines
	Never    string    // why the program cannot do the work, or ""
	Note     string    // what else there is to say, or ""
}

// add appends a time to a figure in milliseconds.
func (f *Figure) add(d time.Duration, at float64) {
	f.Values = append(f.Values, measure.Milliseconds(d))
	f.At = append(f.At, at)
}

// one returns a figure with one value.
func one(metric, unit string, value float64) Figure {
	return Figure{Metric: metric, Unit: unit, Values: []float64{value}}
}

// A Job is a work with its sessions, which are open and ready.
type Job struct {
	T       *measure.T
	Host    *rig.Host
	Server  program.Server
	Link    netem.Config
	Clients []*Client

	Ends    []time.Duration // when disturbances are over, since Begin
	Stagger time.Duration   // by which everything is later for each next client

	OnBegin, OnEnd func()

	Keys int // that were typed in all sessions from Begin to End; set by the work before End

	began  time.Time
	mu     sync.Mutex
	events map[*Client][]happened
}

// happened is when an event that ends a disturbance began to happen, and when it was done.
type happened struct{ began, done time.Time }

// Begin ends the warm-up: events, counters and clocks start.
func (j *Job) Begin() {
	j.began = time.Now()
	j.OnBegin()
}

// End ends what counts for traffic and CPU time. Late answers may be awaited after it.
func (j *Job) End() { j.OnEnd() }

// At returns when something happens to a client that happens to the first one at a time
// since Begin.
func (j *Job) At(d time.Duration, client int) time.Time {
	return j.began.Add(d + time.Duration(client)*j.Stagger)
}

// since returns seconds since Begin.
func (j *Job) since(at time.Time) float64 { return at.Sub(j.began).Seconds() }

// Happened records that an event that ends a disturbance has happened to a client.
func (j *Job) Happened(c *Client, began, done time.Time) {
	select {
	case c.recovers <- struct{}{}:
	default:
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.events == nil {
		j.events = make(map[*Client][]happened)
	}
	j.events[c] = append(j.events[c], happened{began, done})
}

// happened returns the events so far that ended disturbances of a client.
func (j *Job) happened(c *Client) []happened {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[c][:len(j.events[c]):len(j.events[c])]
}

// truth returns the figure of that name of typing in the sessions of some clients, which is a part of the work.
func (j *Job) truth(clients []*Client, w Typing) Figure {
	part := &Job{T: j.T, Host: j.Host, Server: j.Server, Link: j.Link, Clients: clients, OnBegin: func() {},
		OnEnd: func() {}}
	figures := w.Run(part)
	return figures[slices.IndexFunc(figures, func(f Figure) bool { return f.Metric == "truth" })]
}

// each does something with all clients side by side.
func (j *Job) each(do func(c *Client)) {
	j.T.SideBySide(len(j.Clients), func(_ *measure.T, i int) { do(j.Clients[i]) })
}

// A Client is a terminal with a session.
type Client struct {
	*topology.Machine
	Number   int // from 0
	Terminal *rig.Terminal
	Screen   *screen.Screen

	typed    int           // keys of Typing
	command  *exec.Cmd     // never started: each session starts a copy
	recovers chan struct{} // gets a value when an event has ended a disturbance; capacity 1
}

// NewClient returns a client whose session is not started.
func NewClient(number int, m *topology.Machine, command *exec.Cmd) *Client {
	if m.Namespace != nil {
		command = m.Namespace.In(command)
	}
	return &Client{Machine: m, Number: number, command: command, recovers: make(chan struct{}, 1)}
}

// Start starts the session. It ends with the measurement.
func (c *Client) Start(t *measure.T) {
	cmd := exec.Command(c.command.Path, c.command.Args[1:]...)
	cmd.Env = c.command.Env
	c.Screen = screen.New(t)
	c.Terminal = rig.Watch(t, cmd, c.Screen)
}

// AwaitReady waits until the session is ready, and returns when it was.
func (c *Client) AwaitReady(t *measure.T) time.Time {
	select {
	case at := <-c.Screen.WatchText(readyMark):
		return at
	case <-c.Terminal.Closed():
		t.Fatalf("client %d ended: %q", c.Number, c.Screen.First())
	case <-time.After(rig.Patience):
		t.Fatalf("session %d does not begin: %q", c.Number, c.Screen.First())
	}
	return time.Time{}
}

// PID is the client's process.
func (c *Client) PID() int { return c.Terminal.Cmd.Process.Pid }

// types types. If the client is gone, no answer comes.
func (c *Client) types(text string) { c.Terminal.TTY.WriteString(text) }

// answer types and returns when a mark shows, or the zero time if none does in time.
func (c *Client) answer(text, mark string, limit time.Duration) (typed, shown time.Time) {
	next := c.Screen.WatchText(mark)
	typed = time.Now()
	c.types(text)
	return typed, screen.Await(next, typed.Add(limit))
}

// A transcript is the text that a client has written, without control sequences.
type transcript struct {
	mu    sync.Mutex
	plain screen.Plain
	text  bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range b {
		if t.plain.Text(c) {
			t.text.WriteByte(c)
		}
	}
	return len(b), nil
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// readyMark shows in a session when its work can begin. It is not in the command line.
const readyMark = "<1>"

// A shell is the part of a work whose sessions run a shell. Its prompts are marks.
type shell struct{}

func (shell) Shell(string) string { return "exec env PS1='<$((n=n+1))> ' HISTFILE= sh" }

// mark returns the text of prompt or answer number n, which shows once. The first is
// readyMark.
func mark(n int) string { return fmt.Sprintf("<%d>", n) }

// Executable returns the path of this program.
func Executable(t *measure.T) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
