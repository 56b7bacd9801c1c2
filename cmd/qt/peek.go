package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/cmd/qt/internal/peek"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func peekCommand() *cobra.Command {
	opts := options{role: wire.RolePeek}
	var p peek.Form
	c := &cobra.Command{
		Use:   "peek [flags] [[user@]host [session]]",
		Short: "Show what is on the screen of a session, without attaching to it",
		Long: `Show what is on the screen of a session, as text: of this machine if no host is given, and one
from a list if it is not named and there is more than one. The session's clients are not told of it.

If the shell sends marks of its prompts and commands (qt shell-integration), --last prints the output
of the last command alone, and --marks lists the commands: the rows in which its prompt and its output
begin and in which it has ended, its exit status, and the last line of its prompt. Rows are counted from 0 at
the top of the screen; those of the scrollback are negative. All of that is what the session's programs
say of themselves, and proves nothing.

With --json, print an object:

  cols, rows           size of the terminal
  cursor               an array: column and row, from 0
  alternate            whether the alternate screen is shown, as by an editor
  title                of the window
  runs, waits, waits_since  what runs in the foreground, and what it waits for: as for qt ls
  cwd, cwd_host        directory that the shell has told last, and its host; may be empty. If it has told
                       none, cwd is the directory of the program in the foreground, if that is known
  last_command         the command that has ended last, if the shell sends marks: an object with
                       command (as it was typed, if that is known), status (if it is known), ended (time)
  commands             an array with an object for each command that is known in the rows:
                       prompt, output, end (rows), status (of those that have ended, if it
                       is known), running, and line (the last one of its prompt)
  last_status          exit status of the last command that has ended, or null
  modes                of the terminal, by the names that xterm.js has for them
  screen               an array of rows, each an object:
    wrap               whether the row continues the one above
    runs               an array of pieces of text in one style, each an array:
                       text, colour, background, attributes. A colour is empty (the
                       usual one), pN (number N of the palette) or #rrggbb. The
                       attributes are letters: Bold, Dim, Italic, Underline, K for
                       blinking, Reverse, Hidden, Strike
  scrollback           rows above the screen: as many as --lines says
  main                 rows of the main screen, while the alternate one is shown

With --viewport, each row of these is its text alone, and screen and scrollback are all there is of rows.`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.Check(); err != nil {
				return err
			}
			host, rest := splitHost(args)
			name := strings.Join(rest, "")
			return withSession(c.Context(), host, &name, &opts, func(ctx context.Context, a *reach.Access) error {
				v, err := drive.Peek(ctx, a.Client, name, p.Scrollback())
				if err != nil {
					return err
				}
				return p.Show(c.OutOrStdout(), v)
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&p.JSON, "json", false, "print JSON")
	c.Flags().BoolVar(&p.ANSI, "ansi", false, "print text with colours and attributes")
	c.Flags().StringVar(&p.Image, "png", "", "write an image to this `file`, or to standard output if it is -")
	c.Flags().BoolVar(&p.Viewport, "viewport", false, "print all rows of the screen as text, also empty ones at the end")
	c.Flags().BoolVar(&p.Marks, "marks", false, "list the commands that the shell has told of")
	c.Flags().BoolVar(&p.Last, "last", false, "print the output of the last command")
	c.Flags().Uint32Var(&p.Lines, "lines", 0, "rows of the scrollback to show above the screen, at most `N`")
	complete(c, &opts, hostNames, sessionNames)
	return c
}
