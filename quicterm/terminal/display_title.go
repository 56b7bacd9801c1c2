package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
)

// notice shows a line of our own that belongs to the output, in the title while a full-screen program runs or a window is
// drawn.
func (d *display) notice(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.terminal || !d.seen.now().Alternate() && !d.windowed.Load() {
		d.printLocked(text)
		return
	}
	d.setTitleLocked(text, noticeTime)
}

// setTitle shows a text of our own in the title for a time: the terminal's scrollback is the session's.
func (d *display) setTitle(text string, left time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.setTitleLocked(text, left)
}

func (d *display) setTitleLocked(text string, left time.Duration) {
	d.noticed, d.noticeEnds = text, time.Now().Add(left)
	d.updateTitleLocked()
}

// setLink updates the state of the link.
func (d *display) setLink(l client.LinkState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = l
	if d.painter != nil {
		d.painter.setOffline(l.State == client.Offline)
	}
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
	if !d.seen.now().Ground() {
		d.titleLate = true
		return
	}
	down := d.link.State > client.Live
	noticeLeft := time.Until(d.noticeEnds)
	if !down && d.link.Backlog == 0 && noticeLeft <= 0 {
		d.titleTimer.Stop()
		d.restoreTitleLocked()
		return
	}
	text := d.cfg.titleText(d.link)
	if noticeLeft > 0 {
		text = "qt: " + d.noticed
		d.titleTimer.Reset(noticeLeft)
	} else if left := titleAfter - time.Since(d.link.Since); down && left > 0 && !d.titled {
		d.titleTimer.Reset(left)
		return
	}
	if !d.titled {
		io.WriteString(d.out, "\x1b[22;2t") // push the program's title
		d.titled = true
	}
	fmt.Fprintf(d.out, "\x1b]2;%s\x1b\\", text)
}

func (d *display) restoreTitleLocked() {
	if !d.titled {
		return
	}
	d.titled = false
	io.WriteString(d.out, popProgramTitle)
	if title := d.seen.now().Title(); title != "" { // for terminals without a stack of titles
		fmt.Fprintf(d.out, "\x1b]2;%s\x1b\\", title)
	}
}
