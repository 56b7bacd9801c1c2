package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/vt"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// titleAfter is how long a link is down before the title says so: most
	// outages end before a user reads it.
	titleAfter = time.Second

	// maxPending bounds our own text in bytes that waits for the end of a control
	// sequence. A sequence that does not end is broken, and later text is dropped.
	maxPending = 16 << 10

	// cancel is CAN, which ends an unfinished control sequence (ECMA-48, 8.3.6).
	cancel = 0x18
)

// A display is the output side of a terminal. It passes the program's output on, and
// puts our own text and title between control sequences, never inside one.
type display struct {
	messages Messages

	mu         sync.Mutex
	out        io.Writer
	terminal   bool // out is a terminal
	split      vt.Splitter
	modes      vt.Modes
	replay     *vt.Stripper // nil once the output is live
	titled     bool         // the title is ours
	titleLate  bool         // it is to be set after the control sequence
	pending    []byte       // our text, to be written after the control sequence
	lineStart  bool         // the cursor is at the start of a line, as far as we know
	skipping   bool         // the user asked to skip output
	link       client.LinkState
	titleTimer *time.Timer
}

func newDisplay(out io.Writer, messages Messages) *display {
	d := &display{messages: messages, out: out, replay: new(vt.Stripper), lineStart: true}
	d.titleTimer = time.AfterFunc(time.Hour, d.updateTitle)
	d.titleTimer.Stop()
	return d
}

// begin saves the title of a terminal of the given size, so that restore can restore it.
func (d *display) begin(size wire.Size, terminal bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.terminal = terminal
	d.modes.SetRows(int(size.Rows))
	if terminal {
		io.WriteString(d.out, "\x1b[22;0t") // push the title
	}
}

// setSize tells the size of the terminal.
func (d *display) setSize(size wire.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.modes.SetRows(int(size.Rows))
}

// Write shows output of the program.
func (d *display) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(b)
	if d.replay != nil {
		b = d.replay.Strip(b)
	}
	return n, d.writeLocked(b)
}

func (d *display) writeLocked(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	d.split.Split(b, func([]byte) {}, d.modes.Observe)
	d.lineStart = b[len(b)-1] == '\n'
	_, err := d.out.Write(b)
	d.writePendingLocked()
	return err
}

// writePendingLocked writes our text and title unless the output is inside a control sequence.
func (d *display) writePendingLocked() {
	if !d.split.Ground() {
		return
	}
	if len(d.pending) > 0 {
		d.out.Write(d.pending)
		d.pending, d.lineStart = nil, true
	}
	if d.titleLate {
		d.titleLate = false
		d.updateTitleLocked()
	}
}

// beginReplay marks the following output as old: nobody waits for answers to its queries.
func (d *display) beginReplay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.replay == nil {
		d.replay = vt.StripAfter(&d.split)
	}
}

// endReplay marks the following output as live: programs wait for answers to its queries.
func (d *display) endReplay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.replay != nil {
		d.writeLocked(d.replay.Rest())
		d.replay = nil
	}
}

// print shows lines of our own between the program's output.
func (d *display) print(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.printLocked(text)
}

func (d *display) printLocked(text string) {
	if len(d.pending) > maxPending {
		return
	}
	format := "\r\n[qt: %s]\r\n"
	if strings.Contains(text, "\n") {
		format = "\r\n[qt]\r\n%s\r\n"
	}
	d.pending = fmt.Appendf(d.pending, format, strings.ReplaceAll(text, "\n", "\r\n"))
	d.writePendingLocked()
}

// skip records that the user asked to skip output: the next gap is the skipped output.
func (d *display) skip() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.skipping = true
}

// showGap says that output is missing here.
func (d *display) showGap(g session.Gap) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancelSequenceLocked() // its rest is missing as well
	d.printLocked(d.messages.Gap(g, d.skipping))
	d.skipping = false
}

// cancelSequenceLocked ends an unfinished control sequence.
func (d *display) cancelSequenceLocked() {
	if !d.split.Ground() {
		d.split.Rest()
		d.out.Write([]byte{cancel})
	}
}

// setLink updates the state of the link.
func (d *display) setLink(l client.LinkState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = l
	d.updateTitleLocked()
}

func (d *display) updateTitle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.updateTitleLocked()
}

// updateTitleLocked puts the state of the link into the title, or the program's title back.
func (d *display) updateTitleLocked() {
	if !d.terminal {
		return
	}
	if !d.split.Ground() {
		d.titleLate = true
		return
	}
	down := d.link.State > migrate.Live
	if !down && d.link.Backlog == 0 {
		d.titleTimer.Stop()
		d.restoreTitleLocked()
		return
	}
	if left := titleAfter - time.Since(d.link.Since); down && left > 0 && !d.titled {
		d.titleTimer.Reset(left)
		return
	}
	if !d.titled {
		io.WriteString(d.out, "\x1b[22;2t") // push the program's title
		d.titled = true
	}
	fmt.Fprintf(d.out, "\x1b]2;%s\x1b\\", d.messages.Title(d.link))
}

func (d *display) restoreTitleLocked() {
	if !d.titled {
		return
	}
	d.titled = false
	io.WriteString(d.out, "\x1b[23;2t") // pop it
	d.out.Write(d.modes.Title())        // for terminals without a stack of titles
}

// restore undoes what the program changed in the terminal and puts the title from before
// the session back. If newLine is set, it moves the cursor to an empty line: what a
// program that was left in the middle has drawn below the cursor is erased.
func (d *display) restore(newLine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.titleTimer.Stop()
	d.cancelSequenceLocked()
	d.titleLate = false
	d.writePendingLocked()
	if !d.terminal {
		return
	}
	d.restoreTitleLocked()
	undo := d.modes.Undo()
	d.out.Write(undo)
	io.WriteString(d.out, "\x1b[23;0t") // pop the title that begin has pushed
	if newLine {
		if !d.lineStart || undo != nil {
			io.WriteString(d.out, "\r\n")
		}
		io.WriteString(d.out, "\x1b[J") // erase below
	}
}
