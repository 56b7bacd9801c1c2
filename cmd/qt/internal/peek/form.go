// Package peek shows what is on the screen of a session, in the forms of qt peek.
package peek

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

// A Form is what to show of a screen. The zero Form is its text.
type Form struct {
	JSON, ANSI, Viewport, Marks, Last bool
	Image                             string // file for a PNG
	Lines                             uint32 // of the scrollback
}

// Check returns why the flags do not go together, or nil.
func (p *Form) Check() error {
	forms := 0
	for _, form := range []bool{p.JSON, p.ANSI, p.Image != "", p.Marks, p.Last} {
		if form {
			forms++
		}
	}
	switch {
	case forms > 1:
		return errors.New("--json, --ansi, --png, --marks and --last exclude each other")
	case p.Viewport && (p.ANSI || p.Image != "" || p.Marks || p.Last):
		return errors.New("--viewport goes with --json and --lines only")
	case p.Lines > 0 && (p.Image != "" || p.Marks || p.Last):
		return errors.New("--lines is for text, --ansi and --json")
	case p.Image == "-" && term.IsTerminal(int(os.Stdout.Fd())):
		return errors.New("the image is not for a terminal: name a file, or send the output to one")
	}
	return nil
}

// All is more rows than a server keeps.
const All = 1_000_000

// Scrollback returns how many rows of the scrollback are needed. Servers have fewer than that.
func (p *Form) Scrollback() uint32 {
	if p.Marks || p.Last {
		return All
	}
	return p.Lines
}

// Show writes a screen in this form.
func (p *Form) Show(w io.Writer, v *drive.View) error {
	s := v.Screen
	rows := s.Rows(int(p.Lines))
	switch {
	case p.JSON:
		return p.showJSON(w, v)
	case p.ANSI:
		return picture.ANSI(w, rows)
	case p.Image != "":
		return savePNG(w, p.Image, s)
	case p.Marks:
		return showMarks(w, s)
	case p.Last:
		return showLast(w, s)
	case p.Viewport:
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

func (p *Form) showJSON(w io.Writer, v *drive.View) error {
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
	if !p.Viewport {
		return e.Encode(shown)
	}
	rows := textOf(s.Rows(int(p.Lines)))
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

// savePNG writes an image to a file, or to w if the file is -. Of an image that cannot be written, such as on a full
// disk, no file is left.
func savePNG(w io.Writer, file string, s *screen.Screen) error {
	if file == "-" {
		return writePNG(w, s)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	err = errors.Join(writePNG(f, s), f.Close())
	if info, statErr := os.Lstat(file); err != nil && statErr == nil && info.Mode().IsRegular() {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// writePNG writes an image, and says which characters it has only boxes for.
func writePNG(w io.Writer, s *screen.Screen) error {
	missing, err := picture.PNG(w, s)
	if len(missing) > 0 && err == nil {
		reach.Say("%s", notDrawn(missing))
	}
	return err
}

// maxNotDrawn bounds how many characters notDrawn names, for a line of a terminal.
const maxNotDrawn = 8

// notDrawn says which characters an image has only boxes for.
func notDrawn(missing []rune) string {
	var names []string
	for _, r := range missing[:min(len(missing), maxNotDrawn)] {
		names = append(names, fmt.Sprintf("%U", r))
	}
	if more := len(missing) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("characters that the font of images does not have: %d, drawn as boxes or left out (%s); "+
		"--ansi and --json have them", len(missing), strings.Join(names, ", "))
}
