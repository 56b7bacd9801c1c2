// Package terminal is the user's terminal during a session of package client. It reads the keyboard and finds escapes in
// what is typed, shows the program's output, follows the size of the window, and leaves the terminal as it was before
// the session. A [Watch] shows a session that others type in. Before a session, a [Dialog] lets another program,
// such as ssh, ask the user.
package terminal

import (
	"context"
	"os"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Config says which terminal to use, and how.
type Config struct {
	In, Out *os.File     // need not be a terminal
	Pane    *Pane        // takes the place of both, or nil
	Escape  string       // the setting escape_char
	Predict predict.Mode // when to show what typed keys will show

	Host   string                     // as the user named it
	Role   wire.Role                  // of this client
	Skips  bool                       // the server does not wait for this client
	Needs  func() string              // what ssh needs of the user to connect again, or nothing; nil for nothing
	Status func(client.Status) string // the answer to the escape for the state of the connection

	// Forwards answers a line of the menu of forwards; nil for no menu. It may wait for the server.
	Forwards func(ctx context.Context, line string) string

	// Offers answers a line of the menu of offered files; nil for no menu. The files are those of Offered. More says that
	// the menu stays.
	Offers  func(ctx context.Context, line string) (text string, more bool)
	Offered func(wire.OfferFile)

	// Paste copies what is in the clipboard to a file for the program, and returns its path there; nil for nothing. It calls
	// say with how far it is.
	Paste func(ctx context.Context, say func(text string)) (path string, err error)
}

// A Session is what a terminal needs of a [client.Session].
type Session interface {
	Run(context.Context) (status int, err error)
	Write([]byte) (int, error)
	TryWrite([]byte) (n int, frame uint64, err error)
	Flush()
	AskHint()
	RTT() time.Duration
	CloseWrite() error
	Resize(wire.Size) error
	Sizing() wire.Sizing
	Number() uint64
	TakeSize(wire.Size) error
	Skip() error
	Leave()
	Status() client.Status
	Exit() wire.ExitStatus
}

// A Terminal connects a user's terminal to one session.
type Terminal struct {
	cfg     Config
	display *display
	view    *view // nil without Streams
}

// New returns a terminal. It changes nothing before Run.
func New(cfg Config) *Terminal {
	if cfg.Pane != nil {
		return &Terminal{cfg: cfg, display: newDisplay(cfg.Pane.Out, cfg)}
	}
	t := &Terminal{cfg: cfg, display: newDisplay(cfg.Out, cfg)}
	if !isTerminal(cfg.Out) {
		t.display.aside = os.Stderr
	}
	return t
}

// Streams returns where the session's output and events are to go.
func (t *Terminal) Streams() client.Streams {
	t.view = newView(t.display, newEscapeFilter(t.cfg.Escape).char)
	return client.Streams{
		Stdout:    t.view,
		Replaying: t.view.replaying,
		Replayed:  t.view.replayed,
		Changed:   t.display.setLink,
		Joined:    func(p wire.Presence) { t.display.setTitle(joinedText(p), textTime) },
		Left:      func(p wire.Presence) { t.display.setTitle(leftText(p), textTime) },
		Ending:    func(by string) { t.display.notice(EndingText(by)) },
		Ended:     func(e wire.Ended) { t.display.setTitle(endedText(e, time.Now()), textTime) },
		Lost:      t.view.lost,
		Began:     t.view.began,
		Resized:   t.view.resized,
		Hinted:    t.view.hinted,
		Offered:   t.cfg.Offered,
	}
}

// Size returns the size of the window: that of the first standard stream that is a terminal, or else 80×24.
func (t *Terminal) Size() wire.Size { return windowSize() }

// Ports tells in the title of ports of the server that have opened.
func (t *Terminal) Ports(opened []uint16) {
	if len(opened) > 0 {
		t.display.setTitle(portsText(opened, newEscapeFilter(t.cfg.Escape).char), textTime)
	}
}

// Print shows lines of the caller between the program's output.
func (t *Terminal) Print(text string) { t.display.print(text) }

// Notice is Print for what the user should see also while a full-screen program runs.
func (t *Terminal) Notice(text string) { t.display.notice(text) }
