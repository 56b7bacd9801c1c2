package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
)

// A peeking says what qt peek shows of a screen.
type peeking struct {
	json, ansi, viewport, marks, last bool
	image                             string
	lines                             uint32
}

// check returns why the flags do not go together, or nil.
func (p *peeking) check() error {
	forms := 0
	for _, form := range []bool{p.json, p.ansi, p.image != "", p.marks, p.last} {
		if form {
			forms++
		}
	}
	switch {
	case forms > 1:
		return errors.New("--json, --ansi, --png, --marks and --last exclude each other")
	case p.viewport && (p.ansi || p.image != "" || p.marks || p.last):
		return errors.New("--viewport goes with --json and --lines only")
	case p.lines > 0 && (p.image != "" || p.marks || p.last):
		return errors.New("--lines is for text, --ansi and --json")
	case p.image == "-" && term.IsTerminal(int(os.Stdout.Fd())):
		return errors.New("the image is not for a terminal: name a file, or send the output to one")
	}
	return nil
}

// scrollback returns how many rows of the scrollback are needed. Servers have fewer than that.
func (p *peeking) scrollback() uint32 {
	if p.marks || p.last {
		return maxReplay
	}
	return p.lines
}

func (p *peeking) show(w io.Writer, v *drive.View) error {
	s := v.Screen
	rows := s.Rows(int(p.lines))
	switch {
	case p.json:
		return p.showJSON(w, v)
	case p.ansi:
		return picture.ANSI(w, rows)
	case p.image != "":
		return savePNG(w, p.image, s)
	case p.marks:
		return showMarks(w, s)
	case p.last:
		return showLast(w, s)
	case p.viewport:
		_, err := fmt.Fprintln(w, strings.Join(textOf(rows), "\n"))
		return err
	}
	return picture.Text(w, rows)
}

func textOf(rows []screen.Row) []string {
	lines := []string{}
	for _, row := range rows {
		lines = append(lines, picture.Line(row))
	}
	return lines
}

// peekJSON is what qt peek --json prints. The help of qt peek describes it.
type peekJSON struct {
	screen.Dump
	drive.Facts
	Commands []commandJSON `json:"commands"`
	Status   *int          `json:"last_status"`
}

type commandJSON struct {
	Prompt  int    `json:"prompt"`
	Output  int    `json:"output"`
	End     int    `json:"end"`
	Status  *int   `json:"status,omitempty"`
	Running bool   `json:"running"`
	Line    string `json:"line"`
}

func (p *peeking) showJSON(w io.Writer, v *drive.View) error {
	s := v.Screen
	shown := peekJSON{Dump: s.Dump(), Facts: v.Facts, Commands: []commandJSON{}}
	shown.Title = v.Title()
	for _, c := range s.Commands() {
		command := commandJSON{Prompt: c.Prompt, Output: c.Output, End: c.End, Running: c.Running, Line: promptLine(s, c)}
		if c.Status >= 0 {
			command.Status = &c.Status
		}
		if !c.Running {
			shown.Status = command.Status
		}
		shown.Commands = append(shown.Commands, command)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if !p.viewport {
		return e.Encode(shown)
	}
	rows := textOf(s.Rows(int(p.lines)))
	above := len(rows) - shown.Rows
	shown.Main = nil
	return e.Encode(struct {
		peekJSON
		Scrollback []string `json:"scrollback"`
		Screen     []string `json:"screen"`
	}{shown, rows[:above], rows[above:]})
}

// errNoMarks says that nothing is known of commands.
var errNoMarks = reach.WithHint(errors.New("the session has told of no command in the rows that the server keeps"),
	"qt shell-integration prints what makes a shell do that")

// showMarks lists the commands.
func showMarks(w io.Writer, s *screen.Screen) error {
	commands := s.Commands()
	if len(commands) == 0 {
		return errNoMarks
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROMPT\tOUTPUT\tEND\tSTATUS\tLINE")
	for _, c := range commands {
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\t%s\n", c.Prompt, c.Output, c.End, statusOf(c), promptLine(s, c))
	}
	return t.Flush()
}

// promptLine returns the last line of a command's prompt, which has the command.
func promptLine(s *screen.Screen, c marks.Command) string {
	if c.Prompt == c.Output {
		return ""
	}
	cols, _ := s.Size()
	prompt := s.MainText(c.Prompt, c.Output-1, cols)
	return picture.Line(prompt[len(prompt)-1])
}

func statusOf(c marks.Command) string {
	switch {
	case c.Running:
		return "runs"
	case c.Status < 0:
		return "-"
	}
	return fmt.Sprint(c.Status)
}

// showLast prints the output of the last command, as far as it is kept.
func showLast(w io.Writer, s *screen.Screen) error {
	commands := s.Commands()
	if len(commands) == 0 {
		return errNoMarks
	}
	c := commands[len(commands)-1]
	_, err := io.WriteString(w, strings.Join(textOf(s.MainText(c.Output, c.End, c.Column)), "\n"))
	return err
}
