package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/vt"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxPending bounds our own text in bytes that waits for the end of a control
	// sequence. A sequence that does not end is broken, and later text is dropped.
	maxPending = 16 << 10

	// cancel is CAN, which ends an unfinished control sequence (ECMA-48, 8.3.6).
	cancel = "\x18"

	popProgramTitle = "\x1b[23;2t" // the title that updateTitleLocked has pushed

	pushTitle  = "\x1b[22;0t"
	popTitle   = "\x1b[23;0t" // the title that begin has pushed
	eraseBelow = "\x1b[J"
	home       = "\x1b[H"
)

// A display is the output side of a terminal. It passes the program's output on, and
// puts our own text and title between control sequences, never inside one.
type display struct {
	cfg Config

	mu         sync.Mutex
	out        io.Writer
	terminal   bool               // out is a terminal
	aside      io.Writer          // takes our own text if out is none: a pipe gets the program's output, and nothing else
	seen       *follower          // of all that was written to out, except titles of ours
	guard      *watchdog          // or nil
	painter    *painter           // or nil
	size       wire.Size          // of the terminal
	session    wire.Size          // for which the program draws
	replay     *vt.Stripper       // nil once the output is live
	clipboard  vt.ClipboardFilter // of live output
	titled     bool               // the title is ours
	titleLate  bool               // it is to be set after the control sequence
	pending    []byte             // our text, to be written after the control sequence
	skipping   bool               // the user asked to skip output
	windowed   atomic.Bool        // a window is drawn: what is typed has no place on the terminal that is known
	texts      atomic.Bool        // a text of ours was written
	beneath    []byte             // a snapshot of what the window covers, on a terminal of beneathSize
	link       client.LinkState
	noticed    string    // is in the title
	noticeEnds time.Time // until then

	beneathSize wire.Size
	titleTimer  *time.Timer
}

func newDisplay(out io.Writer, cfg Config) *display {
	d := &display{cfg: cfg, out: out, seen: newFollower(), replay: new(vt.Stripper)}
	d.titleTimer = newTimer(d.updateTitle)
	return d
}

// begin saves the title of a terminal of the given size, so that restore can restore it. The
// guard, or nil, does that if this process is killed.
func (d *display) begin(size wire.Size, terminal bool, guard *watchdog) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.terminal, d.guard, d.session = terminal, guard, size
	d.setSizeLocked(size)
	if terminal {
		d.seen.now().Displace()
		io.WriteString(d.out, pushTitle)
	}
}

// setSize tells the size of the terminal.
func (d *display) setSize(size wire.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setSizeLocked(size)
}

func (d *display) setSizeLocked(size wire.Size) {
	s := d.seen.now()
	before := place(s)
	s.Resize(int(size.Cols), int(size.Rows))
	if d.painter != nil {
		d.painter.resized(s, before)
	}
	if size != d.size {
		d.beneath = nil // terminals wrap lines anew in different ways
	}
	if d.painter != nil && size != d.size {
		d.painter.reset()
		d.painter.hold = size != d.session
	}
	d.size = size
}

// setSessionSize tells the size for which the program draws from now on.
func (d *display) setSessionSize(size wire.Size) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = size
	if d.painter != nil {
		d.painter.reset()
		d.painter.hold = size != d.size
	}
}

// resetPainterLocked says that the screen gets text that is not of the program, or is replaced.
func (d *display) resetPainterLocked() {
	if d.painter != nil {
		d.painter.reset()
	}
}

// Write shows output of the program.
func (d *display) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(b)
	if d.replay != nil {
		return n, d.writeLocked(d.replay.Strip(b))
	}
	return n, d.writeLocked(d.clipboard.Filter(b))
}

func (d *display) writeLocked(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	err := d.showLocked(b)
	d.writePendingLocked()
	return err
}

// showLocked writes to the terminal.
func (d *display) showLocked(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if d.painter != nil {
		return d.painter.show(b)
	}
	_, err := d.out.Write(b)
	d.seen.Write(b)
	return err
}

// writePendingLocked writes our text and title unless the output is inside a control sequence.
func (d *display) writePendingLocked() {
	if len(d.pending) == 0 && !d.titleLate || !d.seen.now().Ground() {
		return
	}
	if len(d.pending) > 0 {
		if d.windowed.Load() { // in place of the window
			d.showLocked([]byte(home + "\x1b[2J"))
		}
		d.showLocked(d.pending)
		d.pending = nil
		d.texts.Store(true)
		d.resetPainterLocked()
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
		d.stripLocked()
	}
}

// stripLocked begins to strip queries, after what the terminal has.
func (d *display) stripLocked() {
	held := d.clipboard.Rest()
	d.replay = vt.StripAfter(d.seen.now().Continuation())
	d.writeLocked(d.replay.Strip(held))
}

// endReplay marks the following output as live: programs wait for answers to its queries.
func (d *display) endReplay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.replay != nil {
		d.writeLocked(d.clipboard.Filter(d.replay.Rest()))
		d.replay = nil
	}
}

func (d *display) setReplay(replay bool) {
	if replay {
		d.beginReplay()
	} else {
		d.endReplay()
	}
}

// copyScreen returns a screen that shows the same as the terminal, without what has scrolled off.
func (d *display) copyScreen() *screen.Screen {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seen.now()
	cols, rows := s.Size()
	c := screen.New(cols, rows, screen.Limits{})
	c.Write(s.Snapshot(screen.Snapshot{}))
	return c
}

// gapText describes a gap.
func (d *display) gapText(g client.Gap) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	skipped := d.skipping
	d.skipping = false
	return GapText(g, skipped, d.cfg.Skips)
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
	if d.aside != nil {
		fmt.Fprintf(d.aside, "qt: %s\r\n", strings.ReplaceAll(text, "\n", "\r\n")) // the keyboard's terminal may be raw
		return
	}
	format := "\r\n[qt: %s]\r\n"
	if strings.Contains(text, "\n") {
		format = "\r\n[qt]\r\n%s\r\n"
	}
	d.pending = fmt.Appendf(d.pending, format, strings.ReplaceAll(text, "\n", "\r\n"))
	d.writePendingLocked()
}

// echo shows what the user types for this client, between the program's output.
func (d *display) echo(b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.pending) <= maxPending {
		d.pending = append(d.pending, b...)
		d.writePendingLocked()
	}
}

// skip records that the user asked to skip output: the next gap is the skipped output.
func (d *display) skip() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.skipping = true
}

// showGap says that output is missing here, and shows what the screen is without it.
func (d *display) showGap(g client.Gap) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resetPainterLocked()
	d.cancelSequenceLocked() // its rest is missing as well
	if g.Snapshot != nil {
		d.undoLocked()
	}
	d.printLocked(GapText(g, d.skipping, d.cfg.Skips))
	d.skipping = false
	if g.Snapshot != nil {
		d.showSnapshotLocked(d.clipboard.Filter(g.Snapshot))
	}
}

// showScreen shows the screen as it was at the attach.
func (d *display) showScreen(snapshot []byte, inPlace bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resetPainterLocked()
	d.cancelSequenceLocked()
	d.undoLocked()
	snapshot = d.clipboard.Filter(snapshot)
	if inPlace {
		io.WriteString(d.out, home+eraseBelow)
		d.resetToLocked(snapshot)
		return
	}
	d.newLineLocked()
	d.showSnapshotLocked(snapshot)
}

// showSnapshotLocked shows a snapshot on a terminal in its usual state, with the cursor on an
// empty line. What stands above that moves into the scrollback, without empty lines.
func (d *display) showSnapshotLocked(snapshot []byte) {
	if d.terminal {
		io.WriteString(d.out, strings.Repeat("\n", max(int(d.size.Rows)-1, 0))+home+eraseBelow)
	}
	d.resetToLocked(snapshot)
}

// resetToLocked shows a snapshot on an empty screen.
func (d *display) resetToLocked(snapshot []byte) {
	d.seen.reset()
	d.showLocked(snapshot)
	if d.replay != nil {
		d.stripLocked()
	}
	d.updateTitleLocked()
}

// cancelSequenceLocked ends an unfinished control sequence.
func (d *display) cancelSequenceLocked() {
	d.clipboard = vt.ClipboardFilter{}
	if d.aside == nil && !d.seen.now().Ground() {
		d.showLocked([]byte(cancel))
	}
}

// undoLocked brings the terminal back to its usual state.
func (d *display) undoLocked() {
	if d.terminal {
		d.showLocked(d.seen.now().Undo())
	}
}

// newLineLocked moves the cursor to an empty line, unless it is on one.
func (d *display) newLineLocked() {
	if d.terminal && !d.seen.onEmptyLine() {
		d.showLocked([]byte("\r\n"))
	}
}

// yield leaves the terminal to others while use runs, which returns the size of the terminal afterwards, and
// draws the screen anew. It reports whether the size has changed. What others have put onto the terminal
// moves into the scrollback.
func (d *display) yield(use func() wire.Size) (resized bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resetPainterLocked()
	if d.terminal {
		d.out.Write(d.seen.now().Undo())
		if d.titled {
			io.WriteString(d.out, popProgramTitle)
		}
		io.WriteString(d.out, popTitle+"\r\n"+eraseBelow)
	}
	d.guard.set(watchdogOff)
	size := use()
	resized = size != d.size
	d.setSizeLocked(size)
	if d.terminal {
		io.WriteString(d.out, pushTitle)
		d.titled = false
		d.showSnapshotLocked(d.seen.now().Snapshot(screen.Snapshot{}))
	}
	d.guard.set(watchdogOn)
	return resized
}

// restore undoes what the program changed in the terminal and puts the title from before
// the session back. If newLine is set, it moves the cursor to an empty line: what a
// program that was left in the middle has drawn below the cursor is erased.
func (d *display) restore(newLine bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.titleTimer.Stop()
	if d.painter != nil {
		d.painter.setMode(predict.Never)
	}
	d.cancelSequenceLocked()
	d.titleLate = false
	d.writePendingLocked()
	if !d.terminal {
		return
	}
	d.restoreTitleLocked()
	d.undoLocked()
	io.WriteString(d.out, popTitle)
	if newLine {
		d.newLineLocked()
		io.WriteString(d.out, eraseBelow)
	}
	d.guard.dismiss()
	d.guard = nil
}
