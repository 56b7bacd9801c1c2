package terminal

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The texts that a terminal shows to its user within a session. Lines end in \n, the last one without it.

// titleText is the title of the window while the link is down or much output is on its way.
func (c *Config) titleText(l client.LinkState) string {
	needs := ""
	if c.Needs != nil {
		needs = c.Needs()
	}
	if l.State > client.Live && needs != "" {
		return fmt.Sprintf("qt: no contact since %s, ssh needs you (%s): unlock a key, or qt attach %s elsewhere",
			l.Since.Format(time.TimeOnly), needs, c.Host)
	}
	if l.State > client.Live && l.Attempts == 0 {
		return fmt.Sprintf("qt: no contact since %s", l.Since.Format(time.TimeOnly))
	}
	if l.State > client.Live {
		return fmt.Sprintf("qt: no contact since %s, reconnecting (attempt %d)", l.Since.Format(time.TimeOnly), l.Attempts)
	}
	return fmt.Sprintf("qt: catching up, %s left", Bytes(l.Backlog))
}

// GapText describes output that is missing: skipped by the user, or left out because the server does not wait for a
// client that is too far behind, or lost.
func GapText(g client.Gap, skipped, leftOut bool) string {
	what := "lost, the server has kept no more"
	switch {
	case skipped:
		what = "skipped"
	case leftOut:
		what = "left out, this client was too far behind"
	}
	return fmt.Sprintf("%d bytes of output %s (frames %d to %d)", g.Bytes, what, g.From, g.To)
}

// joinedText says that another client shares or watches the session, leftText that it does so no more.
func joinedText(p wire.Presence) string {
	if p.Role == wire.RoleShare {
		return p.Client + " shares this session and can type"
	}
	return p.Client + " watches this session"
}

func leftText(p wire.Presence) string { return p.Client + " has left this session" }

// endedText says what has ended while this client was away.
func endedText(e wire.Ended, now time.Time) string {
	command, how := cmp.Or(e.Command, "a command"), "ended"
	if e.Status >= 0 {
		how = fmt.Sprintf("exit %d", e.Status)
	}
	at, format := time.Unix(e.At, 0), "15:04"
	if now.Sub(at) >= 12*time.Hour { // the time alone would be ambiguous
		format = "Jan 2 15:04"
	}
	return fmt.Sprintf("%s: %s, %s", command, how, at.Format(format))
}

// portsText says that programs of the session listen at ports, and where one is forwarded.
func portsText(opened []uint16, escape byte) string {
	text := fmt.Sprintf("port %d is open", opened[0])
	if len(opened) > 1 {
		text = "ports " + strings.Trim(fmt.Sprint(opened), "[]") + " are open"
	}
	if escape != 0 {
		text += fmt.Sprintf(": %c+", escape)
	}
	return text
}

// EndingText says that the session is being ended, by whom and why.
func EndingText(by string) string { return "this session is being ended by " + by }

// clippedText says that a session that is watched has a larger screen than the terminal, which
// shows the part from a column and a row on, or the scrollback above, if that is below 0. A whole screen needs no words.
func clippedText(session wire.Size, column, row int, whole bool) string {
	if whole {
		return ""
	}
	return fmt.Sprintf("%dx%d from %d,%d: arrows move, space follows", session.Cols, session.Rows, column, row)
}

// windowText says the same of a session in which the user types: the terminal shows all of its screen, or
// the part from a column and a row on.
func windowText(session wire.Sizing, column, row int, whole bool, escape byte) string {
	hint := fmt.Sprintf("%dx%d", session.Cols, session.Rows)
	if !whole {
		hint += fmt.Sprintf(" from %d,%d", column, row)
	}
	hint += takeHint(escape)
	if session.Client != "" { // at the end, which a narrow terminal cuts off
		hint += ", the size of " + session.Client
	}
	return hint
}

// sizedText says that the size of the session has another owner: this client or another one.
func sizedText(session wire.Sizing, own bool, escape byte) string {
	if own {
		return "the session has the size of this terminal now"
	}
	owner := session.Client
	if owner == "" {
		owner = "another client"
	}
	return fmt.Sprintf("the session has the size of %s now, %dx%d%s", owner, session.Cols, session.Rows, takeHint(escape))
}

// takeHint says how to take the size.
func takeHint(escape byte) string {
	if escape == 0 {
		return ""
	}
	return fmt.Sprintf(" (%c= takes it)", escape)
}

// suspendHelp is for systems whose shells have jobs, the others for clients that can do that.
const (
	suspendHelp = " ~^Z suspend qt, as a job of your shell: fg continues it\n"
	menuHelp    = " ~+  list, add and remove forwards\n"
	offersHelp  = " ~<  save a file that qtd get offers, or answer for what\n     the ssh agent is asked\n"
	pasteHelp   = " ~!  copy the clipboard's picture or file there, and\n     paste its path\n"
)

// helpText lists the escapes, in lines that fit into a narrow window.
func helpText(cfg Config, escape byte) string {
	help := `Escapes, at the start of a line:
 ~.  leave: the session continues, qt attach resumes it
` + suspendHelp + ` ~#  show the state of the connection
 ~>  skip the output that has piled up
 ~*  show keys before the server answers, or no longer
 ~=  give a shared session the size of this terminal
` + menuHelp + offersHelp + pasteHelp + ` ~?  show this help
 ~~  type a ~`
	if cfg.Role == wire.RoleWatch {
		help = `You watch: what you type does not reach the program.
Ctrl-C leaves. The arrow keys and those for pages move the
window over a larger screen and over what has scrolled
off; space lets it follow the cursor. Escapes:
 ~.  leave
` + suspendHelp + ` ~#  show the state of the connection
 ~?  show this help`
	}
	if runtime.GOOS == "windows" {
		help = strings.Replace(help, suspendHelp, "", 1)
	}
	if cfg.Forwards == nil {
		help = strings.Replace(help, menuHelp, "", 1)
	}
	if cfg.Offers == nil {
		help = strings.Replace(help, offersHelp, "", 1)
	}
	if cfg.Paste == nil {
		help = strings.Replace(help, pasteHelp, "", 1)
	}
	return strings.ReplaceAll(help, "~", string(escape))
}

// pastingText says how far a paste is that takes long, and pasteLeftText that the user has left it.
func pastingText(state string) string { return state + ": Ctrl-C leaves it" }

const pasteLeftText = "nothing is pasted"

// inputFullText says that what is typed from now on is dropped: the program does not
// read, and waiting bytes are kept already.
func inputFullText(waiting int) string {
	return fmt.Sprintf("the program does not read its input: %s are waiting, further input is dropped",
		Bytes(uint64(waiting)))
}

// inputDroppedText says how many bytes were dropped until now, when there is room again.
func inputDroppedText(bytes int) string {
	return fmt.Sprintf("the program reads its input again; %s were dropped", Bytes(uint64(bytes)))
}

// predictionsText says when keys show before the server answers, and how often that was right.
func predictionsText(m predict.Mode, s predict.Score) string {
	if m == predict.Never {
		return "predictions: off"
	}
	when := "on a slow path"
	if m == predict.Always {
		when = "always"
	}
	if s.Shown == 0 {
		return "predictions: " + when + ", none so far"
	}
	return fmt.Sprintf("predictions: %s; %d of %d keys shown at once, %d wrong", when, s.Shown, s.Keys, s.Wrong)
}

// Bytes writes a number of bytes with a unit.
func Bytes(n uint64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1000, "kMGTPE"
	for v >= 999.95 {
		v, units = v/1000, units[1:]
	}
	return fmt.Sprintf("%.1f %cB", v, units[0])
}

// Duration writes a duration in its largest unit.
func Duration(d time.Duration) string {
	switch {
	case d.Minutes() < 1:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d.Hours() < 1:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d.Hours() < 48:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
