package terminal

import (
	"fmt"
	"io"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
)

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
	if !d.seen.ground() {
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
		d.updateGuardLocked()
	}
	fmt.Fprintf(d.out, "\x1b]2;%s\x1b\\", text)
}

func (d *display) restoreTitleLocked() {
	if !d.titled {
		return
	}
	d.titled = false
	d.updateGuardLocked()
	io.WriteString(d.out, popProgramTitle)
	d.seen.ask(func(s *screen.Screen) {
		if s.Title() != "" { // for terminals without a stack of titles
			fmt.Fprintf(d.out, "\x1b]2;%s\x1b\\", s.Title())
		}
	})
}
