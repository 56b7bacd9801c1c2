package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// timedOut is the exit status when --timeout has passed, as of timeout(1).
const timedOut = 124

// endTime is how long a command has to end when its time has passed.
const endTime = time.Second

// errTimedOut is the cause of the end of a context with --timeout.
var errTimedOut = errors.New("the time of --timeout has passed")

// maxOutput bounds the output of a command that --json collects, in bytes.
const maxOutput = 16 << 20

var errLongOutput = errors.New("the output is longer than 16 MiB, and the command runs on: " +
	"without --json it is printed as it comes")

// A driveCommand is a command that uses a session as a program does.
type driveCommand struct {
	options
	asJSON  bool
	timeout time.Duration // 0 for none
}

// newDriveCommand returns a command with the flags that all of them have. Its first two arguments are the host and
// the session.
func newDriveCommand(d *driveCommand, c *cobra.Command, least int, usual time.Duration) *cobra.Command {
	c.Args = usage(cobra.MinimumNArgs(2 + least))
	addTargetFlags(c, &d.options)
	c.Flags().BoolVar(&d.asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&d.timeout, "timeout", usual, "give up after this `time`, with exit status 124; 0 is never")
	complete(c, &d.options, hostNames, sessionNames)
	return c
}

// on calls f with a way to the host. When the time has passed, qt ends with status timedOut.
func (d *driveCommand) on(c *cobra.Command, host string, f reach.Call) error {
	ctx := c.Context()
	if d.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.timeout)
		defer cancel()
	}
	done := make(chan error, 1)
	go func() { done <- reach.With(ctx, host, &d.Options, f) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(endTime): // standard output is not read
			err = context.Cause(ctx)
		}
	}
	var unread *drive.UnreadError
	switch {
	case errors.As(err, &unread):
		reach.Complain(err)
	case err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		reach.Complain(errTimedOut)
	default:
		return err
	}
	return exitError(timedOut)
}

// addID adds the flag that names what is typed.
func addID(c *cobra.Command, id *string) {
	c.Flags().StringVar(id, "id", "", "a `name` for this call, such as a random one: a repeat types nothing again")
}

// report tells what the user may not expect, unless it is in the JSON.
func (d *driveCommand) report(a drive.Answer) {
	if d.asJSON {
		return
	}
	if a.Again {
		say("this was typed before, with the same --id: this is what has come of it")
	}
	if len(a.Typists) > 0 {
		say("%s has typed too", strings.Join(a.Typists, ", "))
	}
}

// print prints v as JSON with --json, and otherwise a line of text, unless that is empty.
func (d *driveCommand) print(c *cobra.Command, v any, line string) error {
	if d.asJSON {
		e := json.NewEncoder(c.OutOrStdout())
		e.SetEscapeHTML(false)
		return e.Encode(v)
	}
	if line == "" {
		return nil
	}
	_, err := fmt.Fprintln(c.OutOrStdout(), line)
	return err
}

func runCommand() *cobra.Command {
	var d driveCommand
	var line drive.Line
	c := &cobra.Command{
		Use:   "run [flags] [user@]host session command-line",
		Short: "Run a command line in the shell of a session, and print its output",
		Long: `Type a command line into the shell of a session, wait for its end, print its output alone, as text, and exit
with its status. The session's clients see it as if it was typed. "." is this machine.

It is an error if no shell waits at its prompt, unless --wait waits for that. Shells that mark their prompts
(qt shell-integration) say what is output; to others, the line that is typed has marks of its own.

It waits for the end of a command line that another client runs so. A line with the --id of one that was run before is
not typed again, and gives the output and the status of that: for a program that did not get the answer. The server
knows the last 64 ids of a session.

With --json, print an object at the end: status, output, since (the offset of the output before it, for qt tail),
bytes that were typed, again if that was done before, after (who was waited for) and typed_by (who else has typed
meanwhile).`,
		RunE: func(c *cobra.Command, args []string) error {
			var output strings.Builder
			out := io.Writer(c.OutOrStdout())
			if d.asJSON {
				out = writerFunc(func(b []byte) (int, error) {
					if output.Len()+len(b) > maxOutput {
						return 0, errLongOutput
					}
					return output.Write(b)
				})
			}
			return d.on(c, args[0], func(ctx context.Context, a *reach.Access) error {
				line.Text = strings.Join(args[2:], " ")
				status, answer, err := drive.Run(ctx, a.Client, args[1], line, out)
				if errors.Is(err, drive.ErrBusy) {
					return reach.WithHint(err, "--wait waits for the prompt")
				}
				if err != nil {
					return err
				}
				d.report(answer)
				if d.asJSON {
					err = d.print(c, struct {
						Status int    `json:"status"`
						Output string `json:"output"`
						drive.Answer
					}{status, output.String(), answer}, "")
				}
				if err == nil && status != 0 {
					err = exitError(status)
				}
				return err
			})
		},
	}
	newDriveCommand(&d, c, 1, 0)
	c.Flags().SetInterspersed(false)
	c.Flags().BoolVar(&line.Wait, "wait", false, "wait until a shell waits at its prompt")
	addID(c, &line.ID)
	return c
}

func sendCommand() *cobra.Command {
	var d driveCommand
	var in drive.Input
	var file string
	var force bool
	c := &cobra.Command{
		Use:   "send [flags] [user@]host session [text...]",
		Short: "Type into a session",
		Long: `Type text into a session, beside its clients, and wait until its program has read it. "." is this machine.

A program that asks for bracketed paste gets the text as one paste. Where the kernel edits lines, as for "read" of
a shell, text and Enter are one write; elsewhere, Enter follows when the text was read and the terminal is still
for 50 ms. If the program does not read, qt says how many bytes are unread, and exits with status 124: they stay
typed. Nothing is typed twice.

What other programs type is waited for. What has the --id of something that was typed before is not typed again, and
gets the answer of that: for a program that did not get it. The server knows the last 64 ids of a session.

With --json, print an object: bytes that were typed, unread of them, since (the offset of the output before, for
qt wait and qt tail), again if that was done before, after (who was waited for) and typed_by (who else has typed
meanwhile).

Keys are one character, C-c for Control, M-x for Alt, or Enter, Tab, Escape, Space, Backspace, Delete, Insert, Up,
Down, Left, Right, Home, End, PageUp, PageDown, F1 to F12. They come after the text.`,
		RunE: func(c *cobra.Command, args []string) error {
			in.Text = strings.Join(args[2:], " ")
			switch {
			case file != "" && in.Text != "":
				return errors.New("--file and text exclude each other")
			case file == "-":
				b, err := io.ReadAll(c.InOrStdin())
				if err != nil {
					return err
				}
				in.Text = string(b)
			case file != "":
				b, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				in.Text = string(b)
			case in.Secret && (in.Text != "" || file != "" || len(in.Keys) > 0):
				return errors.New("--secret takes one line from standard input, and nothing else")
			case in.Secret:
				line, err := secretLine(c.InOrStdin())
				if err != nil {
					return err
				}
				in.Text, in.Enter = line, true
			case in.Text == "" && len(in.Keys) == 0 && !in.Enter:
				return reach.WithHint(errors.New("there is nothing to type"), "give text, --key, --enter or --file")
			}
			in.Secret = in.Secret && !force
			return d.on(c, args[0], func(ctx context.Context, a *reach.Access) error {
				answer, err := drive.Send(ctx, a.Client, args[1], in)
				if errors.Is(err, drive.ErrNotSecret) {
					return reach.WithHint(err, "--force types it, for all to see")
				}
				if unread := new(drive.UnreadError); err == nil || d.asJSON && errors.As(err, &unread) {
					d.report(answer)
					err = errors.Join(err, d.print(c, answer, ""))
				}
				return err
			})
		},
	}
	newDriveCommand(&d, c, 0, 10*time.Second)
	c.Flags().StringArrayVar(&in.Keys, "key", nil, "type this `key` too; may be repeated")
	c.Flags().BoolVar(&in.Enter, "enter", false, "press Enter at the end")
	c.Flags().BoolVar(&in.Secret, "secret", false,
		"type a line of standard input, only if a program reads a password: with echo off")
	c.Flags().BoolVar(&force, "force", false, "with --secret: type it in any case; the program may show it")
	addID(c, &in.ID)
	c.Flags().StringVar(&file, "file", "", "type what this `file` has; - is standard input")
	return c
}

// secretLine reads a line of standard input, without showing it on a terminal.
func secretLine(in io.Reader) (string, error) {
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		secret, err := reach.AskSecret("secret: ")
		return string(secret), err
	}
	line, err := bufio.NewReader(io.LimitReader(in, wire.MaxInput)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

func waitCommand() *cobra.Command {
	var d driveCommand
	var conditions []drive.Condition
	var since uint64
	c := &cobra.Command{
		Use:   "wait [flags] [user@]host session",
		Short: "Wait until a session shows something, reads, or ends",
		Long: `Wait until one of some conditions holds in a session, or exit at once if one does already. "." is this machine.
Print which one it was, what has matched and where: the row of the screen, from 0, and the offset in the output, for
--since and qt tail. With --json, print an object: condition, match, row, next, and with exit the status.

--text looks for a regular expression (RE2) in each line, also in those that scroll by meanwhile; with --since, also in
the output since that offset. If the session's program ends and --exit is not one of the conditions, the exit
status is 255. A session without a terminal can be waited for with --exit alone.

If others have typed by hand since the last qt send or qt run, qt says who; with --json that is typed_by.`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(conditions) == 0 {
				return reach.WithHint(errors.New("there is nothing to wait for"), "qt wait --help lists the conditions")
			}
			return d.on(c, args[0], func(ctx context.Context, a *reach.Access) error {
				var from *uint64
				if c.Flags().Changed("since") {
					from = &since
				}
				m, err := drive.Wait(ctx, a.Client, args[1], from, conditions...)
				if err != nil {
					return err
				}
				d.report(drive.Answer{Typists: m.Typists})
				line := fmt.Sprintf("%s: row %d, output %d", m.Kind, m.Row, m.Next)
				switch {
				case m.Kind == drive.Exit:
					line = fmt.Sprintf("%s: status %d", m.Kind, *m.Status)
				case m.Text != "":
					line += ": " + m.Text
				}
				return d.print(c, m, line)
			})
		},
	}
	newDriveCommand(&d, c, 0, 0)
	f := c.Flags()
	pattern := func(kind drive.Kind) flagValue {
		return flagValue{kind: "pattern", set: func(s string) error {
			re, err := regexp.Compile(s)
			conditions = append(conditions, drive.Condition{Kind: kind, Pattern: re})
			return err
		}}
	}
	f.Var(pattern(drive.Text), "text", "a line matches this `pattern`")
	f.Var(pattern(drive.NoText), "no-text", "no line of the screen matches this `pattern`")
	f.Var(flagValue{kind: "time", set: func(s string) error {
		still, err := time.ParseDuration(s)
		conditions = append(conditions, drive.Condition{Kind: drive.Stable, For: still})
		return err
	}}, "stable", "nothing was printed for this `time`, such as 500ms")
	for _, simple := range []struct {
		kind drive.Kind
		help string
	}{
		{drive.Prompt, "the session's shell waits at its prompt"},
		{drive.Reading, "the program in the foreground waits for input"},
		{drive.Exit, "the session's program has ended"},
		{drive.Bell, "the bell rings"},
		{drive.Notify, "a program sends a notification"},
	} {
		f.BoolFunc(string(simple.kind), simple.help, func(string) error {
			conditions = append(conditions, drive.Condition{Kind: simple.kind})
			return nil
		})
	}
	f.Uint64Var(&since, "since", 0, "look at the output since this `offset` too")
	return c
}

func tailCommand() *cobra.Command {
	var d driveCommand
	var since uint64
	var follow, plain bool
	c := &cobra.Command{
		Use:   "tail [flags] [user@]host session",
		Short: "Print the output of a session, from a place on",
		Long: `Print the output of a session as its program wrote it, as far as the server keeps it, or from an offset on. "." is
this machine. With -f, go on until the program ends. Of a session without a terminal, print both streams of what its
client has not read yet, and of what comes.

With --plain, print the text that the terminal has shown, without control sequences: each line when it scrolls off the
screen, and at the end those that are left there.

With --json, print an object each time: from and next, the offsets of its beginning and its end, text, and lost, how
many bytes before it are not kept any more. --since with the last next goes on without a byte that is lost or comes
twice, after any outage.`,
		RunE: func(c *cobra.Command, args []string) error {
			return d.on(c, args[0], func(ctx context.Context, a *reach.Access) error {
				tail := drive.Tail
				if plain {
					tail = drive.PlainTail
				}
				err := tail(ctx, a.Client, args[1], since, follow, func(chunk drive.Chunk) error {
					if d.asJSON {
						return d.print(c, chunk, "")
					}
					if chunk.Lost > 0 && c.Flags().Changed("since") {
						say("%d bytes of output are not kept any more", chunk.Lost)
					}
					_, err := io.WriteString(c.OutOrStdout(), chunk.Text)
					return err
				})
				if exit := new(drive.ExitError); errors.As(err, &exit) {
					return nil
				}
				return err
			})
		},
	}
	newDriveCommand(&d, c, 0, 0)
	c.Flags().Uint64Var(&since, "since", 0, "begin at this `offset` of the output")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the session's program ends")
	c.Flags().BoolVar(&plain, "plain", false, "print the text that the terminal has shown, line by line")
	return c
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
