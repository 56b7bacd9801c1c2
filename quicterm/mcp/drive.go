package mcp

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
)

// A session is an argument of the tools that are about one.
type session struct {
	host
	Session string `json:"session" jsonschema:"the name of the session, or the start of its id"`
}

// Notices are in the results of tools that use an attachment.
type notices struct {
	Notices []string `json:"notices,omitempty" jsonschema:"what other clients have done since the last result"`
}

// A deadline is an argument of tools that wait.
type deadline struct {
	Timeout float64 `json:"timeout_seconds,omitempty" jsonschema:"how long to wait at most, up to a day; 30 if it is left out"`
}

// usualTime is less than clients give a call, which is mostly a minute.
const usualTime = 30 * time.Second

func (d deadline) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	seconds := min(max(d.Timeout, 0), (24 * time.Hour).Seconds())
	return context.WithTimeout(ctx, cmp.Or(time.Duration(seconds*float64(time.Second)), usualTime))
}

type view struct {
	Screen    string `json:"screen" jsonschema:"the rows as lines of text, without empty ones at the end"`
	Cols      int    `json:"cols"`
	Rows      int    `json:"rows"`
	Column    int    `json:"cursor_column" jsonschema:"from 0"`
	Row       int    `json:"cursor_row" jsonschema:"from 0"`
	Alternate bool   `json:"alternate,omitempty" jsonschema:"the alternate screen is shown, as by an editor"`
	Title     string `json:"title,omitempty"`
	Next      uint64 `json:"next" jsonschema:"where the output ends: an offset for tail, and for since of wait"`
	drive.Facts
	notices
}

func (s *server) peek(ctx context.Context, in session) (out view, err error) {
	ctx, cancel := deadline{}.limit(ctx)
	defer cancel()
	out.notices, err = s.attached(ctx, in, look, func(t *drive.Terminal) error {
		v, err := t.Peek(ctx)
		if err != nil {
			return err
		}
		var text strings.Builder
		_ = picture.Text(&text, v.Screen.Rows(0)) // a Builder takes all
		out.Screen, out.Alternate, out.Title = text.String(), v.Screen.Alternate(), v.Title()
		out.Cols, out.Rows = v.Screen.Size()
		out.Column, out.Row = v.Screen.Cursor()
		out.Next, out.Facts = v.Next, v.Facts
		return nil
	})
	return out, err
}

// A named is an argument of tools that type.
type named struct {
	ID string `json:"id,omitempty" jsonschema:"any name for this call: a call with the same id types nothing again and gets the first answer"`
}

type line struct {
	session
	Line string `json:"line" jsonschema:"the command line"`
	Wait bool   `json:"wait,omitempty" jsonschema:"wait until a shell waits at its prompt, and run it then"`
	named
	limit
	deadline
}

type outcome struct {
	Status  *int   `json:"status,omitempty" jsonschema:"the exit status, unless it runs on"`
	Running bool   `json:"running,omitempty" jsonschema:"the time has passed, and the command runs on"`
	Output  string `json:"output" jsonschema:"the end of what it has printed, as text"`
	Omitted int    `json:"omitted,omitempty" jsonschema:"how many bytes of output are before that: tail has them"`
	Since   uint64 `json:"since" jsonschema:"the offset of the output before the line was typed, for tail"`
	notices
}

func (s *server) run(ctx context.Context, in line) (out outcome, err error) {
	ctx, cancel := in.deadline.limit(ctx)
	defer cancel()
	end := ending{most: in.bytes()}
	line := drive.Line{Text: in.Line, Wait: in.Wait, ID: in.ID}
	ran := func(status int, answer drive.Answer, err error) error {
		out.Since = answer.Since
		switch {
		case err == nil:
			out.Status = &status
		case errors.Is(err, context.DeadlineExceeded):
			out.Running = true
			return nil
		}
		return err
	}
	if in.ID != "" { // it may have been typed before the attachment that is kept
		err = s.at(ctx, in.host, func(ctx context.Context, a *reach.Access) error {
			return ran(drive.Run(ctx, a.Client, in.Session, line, &end))
		})
	} else {
		out.notices, err = s.attached(ctx, in.session, change, func(t *drive.Terminal) error {
			return ran(t.Run(ctx, line, &end))
		})
	}
	out.Output, out.Omitted = end.text()
	return out, err
}

// An ending is the end of what is written to it.
type ending struct {
	most    int
	kept    []byte
	omitted int
}

func (e *ending) Write(b []byte) (int, error) {
	e.kept = append(e.kept, b...)
	if len(e.kept) > 2*e.most {
		e.cut()
	}
	return len(b), nil
}

// cut removes all but most bytes, and no part of a character.
func (e *ending) cut() {
	n := max(len(e.kept)-e.most, 0)
	for n > 0 && n < len(e.kept) && !utf8.RuneStart(e.kept[n]) {
		n++
	}
	e.kept = append(e.kept[:0], e.kept[n:]...)
	e.omitted += n
}

func (e *ending) text() (text string, omitted int) {
	e.cut()
	return string(e.kept), e.omitted
}

type typed struct {
	session
	Text  string   `json:"text,omitempty" jsonschema:"typed first; a line feed is as Enter"`
	Keys  []string `json:"keys,omitempty" jsonschema:"typed then: characters, C-c, M-x, Enter, Tab, Up, F1 and the like"`
	Enter bool     `json:"enter,omitempty" jsonschema:"press Enter at the end"`
	named
	deadline
}

type sent struct {
	drive.Answer
	notices
}

func (s *server) send(ctx context.Context, in typed) (out sent, err error) {
	ctx, cancel := in.limit(ctx)
	defer cancel()
	out.notices, err = s.attached(ctx, in.session, change, func(t *drive.Terminal) error {
		out.Answer, err = t.Send(ctx, drive.Input{Text: in.Text, Keys: in.Keys, Enter: in.Enter, ID: in.ID})
		return err
	})
	return out, err
}

type conditions struct {
	session
	Text    string  `json:"text,omitempty" jsonschema:"RE2: a line matches this, also one that scrolls by"`
	NoText  string  `json:"no_text,omitempty" jsonschema:"RE2: no line of the screen matches this"`
	Stable  float64 `json:"stable_seconds,omitempty" jsonschema:"nothing was printed for this time"`
	Prompt  bool    `json:"prompt,omitempty" jsonschema:"the shell of the session waits at its prompt"`
	Reading bool    `json:"reading,omitempty" jsonschema:"the program in the foreground waits for input"`
	Exit    bool    `json:"exit,omitempty" jsonschema:"the program of the session has ended"`
	Bell    bool    `json:"bell,omitempty" jsonschema:"the bell rings"`
	Notify  bool    `json:"notify,omitempty" jsonschema:"a program sends a notification"`
	Since   *uint64 `json:"since,omitempty" jsonschema:"look at the output since this offset too"`
	deadline
}

func (c *conditions) all() (all []drive.Condition, err error) {
	for kind, pattern := range map[drive.Kind]string{drive.Text: c.Text, drive.NoText: c.NoText} {
		if pattern == "" {
			continue
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, drive.Condition{Kind: kind, Pattern: re})
	}
	if c.Stable > 0 {
		all = append(all, drive.Condition{Kind: drive.Stable, For: time.Duration(c.Stable * float64(time.Second))})
	}
	for kind, asked := range map[drive.Kind]bool{
		drive.Prompt: c.Prompt, drive.Reading: c.Reading, drive.Exit: c.Exit, drive.Bell: c.Bell, drive.Notify: c.Notify,
	} {
		if asked {
			all = append(all, drive.Condition{Kind: kind})
		}
	}
	if len(all) == 0 {
		err = errors.New("there is nothing to wait for: give a condition")
	}
	return all, err
}

type match struct {
	drive.Match
	notices
}

func (s *server) wait(ctx context.Context, in conditions) (out match, err error) {
	all, err := in.all()
	if err != nil {
		return out, err
	}
	limited, cancel := in.limit(ctx)
	defer cancel()
	if in.Since != nil {
		err = s.at(limited, in.host, func(ctx context.Context, a *reach.Access) error {
			out.Match, err = drive.Wait(ctx, a.Client, in.Session, in.Since, all...)
			return err
		})
	} else {
		out.notices, err = s.attached(limited, in.session, look, func(t *drive.Terminal) error {
			out.Match, err = t.Wait(limited, all...)
			return err
		})
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = errors.New("none of the conditions has held in time: peek shows the screen")
	}
	return out, err
}
