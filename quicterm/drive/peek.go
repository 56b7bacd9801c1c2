package drive

import (
	"context"
	"errors"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A View is what a session shows at a moment, and what it does.
type View struct {
	Screen *screen.Screen
	Next   uint64 // where the output ended then: an offset for Tail
	Facts
}

// Facts are what is known of a session beside its screen. Texts are what its programs say, printable and bounded.
type Facts struct {
	Activity
	CWD  string `json:"cwd" jsonschema:"the directory that the shell has told, or else that of the program in the foreground"`
	Host string `json:"cwd_host" jsonschema:"its host, if the shell has told one"`
	Last *Ended `json:"last_command,omitempty" jsonschema:"the command that has ended last, if the shell marks its commands"`
}

// Activity is what runs in a session, and what it waits for.
type Activity struct {
	Runs       string     `json:"runs,omitempty" jsonschema:"name of the first process in the foreground"`
	Waits      string     `json:"waits,omitempty" jsonschema:"what it waits for: prompt (a command for the shell), input, or nothing"`
	WaitsSince *time.Time `json:"waits_since,omitempty" jsonschema:"since when; of nothing, when that process was started"`
}

// ActivityOf returns an activity in words; nothing is known of nil.
func ActivityOf(a *wire.Activity) (known Activity) {
	if a == nil {
		return known
	}
	known.Runs, known.Waits = a.Program, a.Waits.String()
	if a.Since != 0 && known.Waits != "" {
		since := time.Unix(a.Since, 0)
		known.WaitsSince = &since
	}
	return known
}

// Ended is a command that has ended.
type Ended struct {
	Command string    `json:"command" jsonschema:"as it was typed, if that is known"`
	Status  *int64    `json:"status,omitempty" jsonschema:"its exit status, if the shell has told it"`
	At      time.Time `json:"ended"`
}

// Peek returns what a session shows and does, with at most so many lines of its scrollback. Its clients are not told.
func Peek(ctx context.Context, c *client.Client, name string, lines uint32) (*View, error) {
	req := &wire.Attach{
		Mode:    wire.ModeAttach,
		Session: name,
		Role:    wire.RolePeek,
		Replay:  wire.Replay{Kind: wire.ReplayScreen, Lines: lines},
	}
	// A screen of the session's size. The functions are called while s runs.
	var s *client.Session
	var v View
	resize := func(size wire.Sizing) { v.Screen.Resize(int(size.Cols), int(size.Rows)) }
	fresh := func(snapshot []byte) {
		cols, rows := v.Screen.Size()
		v.Screen = screen.New(cols, rows, screen.Limits{})
		v.Screen.Write(snapshot)
	}
	s, err := c.Attach(ctx, req, client.Streams{
		Stdout:  writerFunc(func(b []byte) (int, error) { return v.Screen.Write(b) }),
		Began:   fresh,
		Lost:    func(g client.Gap) { fresh(g.Snapshot) },
		Resized: resize,
		Replayed: func() {
			v.Next = s.Offset()
			s.Part()
		},
	})
	if err != nil {
		return nil, err
	}
	v.Screen = screen.New(int(s.Sizing().Cols), int(s.Sizing().Rows), screen.Limits{})
	ctx, stop := context.WithTimeoutCause(ctx, peekTimeout, errNoScreen)
	defer stop()
	_, err = s.Run(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, client.ErrLeft) {
		return nil, err
	}
	v.Facts = factsOf(v.Screen, s.Activity())
	return &v, nil
}

// errNoScreen means that the screen has not come.
var errNoScreen = errors.New("the session did not tell its screen in time")

// factsOf returns what a screen and the server know of a session.
func factsOf(s *screen.Screen, a *wire.Activity) (f Facts) {
	f.Activity = ActivityOf(a)
	host, cwd := s.Directory()
	f.Host, f.CWD = wire.Printable(host, wire.MaxSummary), wire.Printable(cwd, wire.MaxDir)
	if a == nil {
		return f
	}
	if f.CWD == "" {
		f.CWD = a.Dir
	}
	if e := a.Last; e != nil {
		f.Last = &Ended{Command: e.Command, At: time.Unix(e.At, 0)}
		if e.Status >= 0 {
			f.Last.Status = &e.Status
		}
	}
	return f
}

// Title returns the title of the session's terminal.
func (v *View) Title() string { return wire.Printable(v.Screen.Title(), wire.MaxSummary) }

// Peek is [Peek] of the terminal's session. It logs in once more.
func (t *Terminal) Peek(ctx context.Context) (*View, error) {
	return Peek(ctx, t.client, t.session.ID().String(), 0)
}
