//go:build linux || darwin

package holder

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/session/driver"
	"github.com/quicterm/quicterm/quicterm/session/gate"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A client is the other end of an attachment: a client process.
type client struct {
	w        *world
	name     string
	instance wire.InstanceID
	attached wire.Attached
	resumes  uint64
	pings    int

	gate     gate.Gate // guards all below
	input    *buffer.Ring
	endpoint *session.Endpoint
	driver   *driver.Driver
	holds    bool // receives output and does not consume it
	held     []session.Delivered
	frames   []session.Delivered    // without sizes
	sizes    []wire.Size            // other than the one before
	screens  []wire.Snapshot        // in place of output that was not sent
	printed  map[buffer.Type][]byte // what the frames of a type brought
	notices  []session.Notice
	hints    int    // acks with a hint
	number   uint64 // of the newest hint
	newest   wire.Hint
	carriers []carrier.Carrier
	running  int // of carriers
}

// attach makes a new client the writer of the session, over one carrier.
func (w *world) attach(name string) *client {
	w.t.Helper()
	c, conn := w.join(name)
	c.run(conn, true)
	return c
}

// join is attach without the goroutines that read and write the client's end of the
// carrier.
func (w *world) join(name string) (*client, carrier.Carrier) {
	w.t.Helper()
	w.instances++
	return w.joinAs(name, wire.InstanceID{0xff, byte(w.instances >> 8), byte(w.instances)})
}

// joinAs is join for an instance that may have attached before.
func (w *world) joinAs(name string, instance wire.InstanceID) (*client, carrier.Carrier) {
	w.t.Helper()
	return w.joinWith(name, &wire.Attach{
		Instance: instance, PTY: w.h.launch.PTY, Size: wire.Size{Cols: 80, Rows: 24}, Compression: byte(w.compression),
	})
}

// joinWith is join with a request.
func (w *world) joinWith(name string, req *wire.Attach) (*client, carrier.Carrier) {
	w.t.Helper()
	return w.joinBy(wire.Open{Client: name}, req)
}

// joinBy is joinWith with what the daemon knows of the client.
func (w *world) joinBy(open wire.Open, req *wire.Attach) (*client, carrier.Carrier) {
	w.t.Helper()
	name := open.Client
	c := &client{w: w, name: name, instance: req.Instance, input: buffer.NewRing(64 << 20), printed: make(map[buffer.Type][]byte)}
	m, conn := w.ask(&open, req)
	w.want("attach", m, &c.attached)
	c.endpoint = session.NewEndpoint(session.Config{
		Log:    c.input,
		Acked:  1,
		Next:   c.attached.First,
		Offset: c.attached.Offset,
		Window: 4 << 20,

		TakeSnapshots: true,
		TakeNote:      c.takeNote,
	})
	c.driver = driver.New(&c.gate, c.endpoint, c.receivedLocked)
	c.driver.Compress(driver.Compression(req.Compression))
	return c, conn
}

// statement returns the next Resume, with its proof.
func (c *client) statement() *wire.Resume {
	c.resumes++
	r := &wire.Resume{UID: c.attached.UID, ID: c.attached.ID, N: c.resumes}
	r.Instance = c.instance
	r.Proof = auth.Proof(c.attached.Secret, r.Statement())
	return r
}

// resume adds a carrier.
func (c *client) resume() carrier.Carrier {
	c.w.t.Helper()
	r := c.statement()
	m, conn := c.w.ask(&wire.Open{}, r)
	c.w.want("resume", m, &wire.Resumed{})
	fromClient, fromHolder := auth.SealKeys(c.attached.Secret, r.Statement())
	conn = sealed.New(conn, fromClient, fromHolder)
	c.run(conn, true)
	return conn
}

// run moves frames over a carrier until it ends.
func (c *client) run(conn carrier.Carrier, ready bool) {
	started := make(chan struct{})
	c.w.wg.Go(func() {
		c.driver.Run(conn, ready, func(session.CarrierID) {
			c.carriers = append(c.carriers, conn)
			c.running++
			close(started)
		})
		c.gate.Lock()
		c.running--
		c.gate.Changed()
		c.gate.Unlock()
	})
	<-started
	c.w.settle()
}

// hangUp closes all carriers, and blocks until they have ended at the client.
func (c *client) hangUp() {
	c.gate.Lock()
	carriers := c.carriers
	c.gate.Unlock()
	for _, conn := range carriers {
		conn.Close()
	}
	c.awaitEnd()
}

func (c *client) receivedLocked() {
	frames := c.endpoint.Take(math.MaxInt)
	for _, d := range frames {
		if d.Gap == nil && d.Type == wire.Resize {
			sizing, _, err := wire.ParseSizing(d.Payload)
			if err != nil {
				c.w.t.Errorf("size: %v", err)
			}
			if n := len(c.sizes); n == 0 || c.sizes[n-1] != sizing.Size {
				c.sizes = append(c.sizes, sizing.Size)
			}
			continue
		}
		c.frames = append(c.frames, d)
		if d.Gap != nil && d.Gap.Snapshot != nil {
			s, err := wire.ParseSnapshot(d.Gap.Snapshot)
			if err != nil {
				c.w.t.Errorf("snapshot: %v", err)
			}
			c.screens = append(c.screens, s)
		}
		if d.Gap == nil {
			c.printed[d.Type] = append(c.printed[d.Type], d.Payload...)
		}
	}
	if c.held = append(c.held, frames...); !c.holds {
		c.endpoint.Consume(time.Now(), c.held...)
		c.held = nil
	}
	c.notices = append(c.notices, c.endpoint.TakeNotices()...)
	c.gate.Changed()
}

// send appends a frame to the client's log.
func (c *client) send(t buffer.Type, payload string) {
	c.gate.Lock()
	c.input.Append(t, []byte(payload))
	c.endpoint.Appended(time.Now())
	c.driver.Wake()
	c.gate.Unlock()
	c.w.settle()
}

func (c *client) write(s string) { c.send(wire.Stdin, s) }

func (c *client) takeNote(received uint64, note []byte) {
	h, number, err := wire.ParseHint(note, received)
	if err != nil {
		c.w.t.Errorf("an ack of %d with %x: %v", received, note, err)
	}
	if c.hints++; number > c.number {
		c.newest, c.number = h, number
	}
}

// hint returns the newest hint, and how many acks have brought one.
func (c *client) hint() (newest wire.Hint, acks int) {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.newest, c.hints
}

// listen consumes all output from now on, and what was held.
func (c *client) listen() {
	c.gate.Lock()
	c.holds = false
	c.endpoint.Consume(time.Now(), c.held...)
	c.held = nil
	c.driver.Wake()
	c.gate.Unlock()
	c.w.settle()
}

// leave tells the holder that the client will not come back.
func (c *client) leave() { c.notify(wire.NoticeLeaving, "") }

// notify sends a notice.
func (c *client) notify(code byte, text string) {
	c.gate.Lock()
	c.endpoint.Notify(code, text)
	c.driver.Wake()
	c.gate.Unlock()
	c.w.settle()
}

// await blocks until ok returns true, which is called with the gate locked.
func (c *client) await(what string, ok func() bool) {
	c.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), c.w.timeout)
	defer cancel()
	var summary string
	c.gate.Lock()
	err := c.gate.Wait(ctx, ok)
	if err != nil {
		summary = c.summaryLocked()
	}
	c.gate.Unlock()
	if err != nil {
		c.w.t.Fatalf("%s waits in vain for %s; has %s", c.name, what, summary)
	}
	c.w.settle()
}

func (c *client) summaryLocked() string {
	out := c.outputLocked(wire.Stdout)
	return fmt.Sprintf("%d frames, %d bytes that end in %q, notices %v, %d carriers",
		len(c.frames), len(out), out[max(0, len(out)-100):], c.notices, c.running)
}

// awaitOutput blocks until the output contains want.
func (c *client) awaitOutput(want string) {
	c.w.t.Helper()
	searched := 0
	c.await(fmt.Sprintf("output %.100q", want), func() bool {
		out := c.printed[wire.Stdout]
		from := max(0, searched-len(want)+1)
		searched = len(out)
		return bytes.Contains(out[from:], []byte(want))
	})
}

// awaitShown blocks until a text is in a snapshot, or in the output behind one.
func (c *client) awaitShown(want string) {
	c.w.t.Helper()
	c.await(fmt.Sprintf("a screen with %q", want), func() bool {
		return len(c.screens) > 0 && bytes.Contains(c.printed[wire.Stdout], []byte(want)) ||
			slices.ContainsFunc(c.screens, func(s wire.Snapshot) bool { return strings.Contains(shownBy(s), want) })
	})
}

// shownBy returns the text that a terminal shows when it is given a snapshot.
func shownBy(s wire.Snapshot) string {
	terminal := screen.New(int(s.Sizing.Cols), int(s.Sizing.Rows), screen.Limits{})
	terminal.Write(s.Screen)
	return textOf(terminal)
}

// awaitExit blocks until the program has ended and returns its status.
func (c *client) awaitExit() byte {
	c.w.t.Helper()
	return c.awaitExitStatus().Status
}

// awaitExitStatus blocks until the program has ended and returns its Exit frame.
func (c *client) awaitExitStatus() (exit wire.ExitStatus) {
	c.w.t.Helper()
	c.await("the end of the program", func() bool {
		if len(c.frames) == 0 {
			return false
		}
		last := c.frames[len(c.frames)-1]
		exit = wire.ParseExitStatus(last.Payload)
		return last.Type == wire.Exit
	})
	return exit
}

// awaitEnd blocks until all carriers have ended.
func (c *client) awaitEnd() {
	c.w.t.Helper()
	c.await("the end of its carriers", func() bool { return c.running == 0 })
}

// output returns the standard output that was received.
func (c *client) output() string {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.outputLocked(wire.Stdout)
}

func (c *client) outputLocked(t buffer.Type) string { return string(c.printed[t]) }

// lost returns how many frames were received as gaps, and their bytes.
func (c *client) lost() (frames, bytes uint64) {
	c.gate.Lock()
	defer c.gate.Unlock()
	n := c.endpoint.Counters()
	return n.GapFrames, n.GapBytes
}
