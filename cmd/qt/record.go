package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func recordCommand() *cobra.Command {
	opts := options{role: wire.RoleWatch, replay: wire.Replay{Kind: wire.ReplayScreen}}
	c := &cobra.Command{
		Use:   "record [flags] [user@]host session file",
		Short: "Record a session into a file, as one who watches it",
		Long: `Record what a session shows into a new file, until it ends or you press Ctrl-C: an
asciicast file, which "asciinema play FILE" of asciinema 3 plays. It has the screen at the
start, the output and the sizes of the terminal. The file - is the standard
output.

The server keeps the output that this client has not got yet, up to its setting
buffer_size, but the program does not wait for it. If that was not enough, the
recording has a marker where output is missing, and the exit status is 255.

What is typed is not recorded: it is sent to no one who watches. To record the
sessions that you open yourself, use the setting record.`,
		Args: usage(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			return reach.With(c.Context(), args[0], &opts.Options, func(ctx context.Context, a *reach.Access) error {
				return record(ctx, a, args[0], args[1], args[2], &opts)
			})
		},
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	complete(c, &opts, hostNames, sessionNames, nil)
	return c
}

// record records a session until it ends, or a signal does.
func record(ctx context.Context, a *reach.Access, host, name, file string, opts *options) error {
	if _, err := os.Lstat(file); err == nil && file != "-" {
		return fmt.Errorf(recordingExists, file)
	}
	// What ends the recording, and not because of an error of the session.
	ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT)
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := &recorder{failed: fail, skips: true}
	req := &wire.Attach{Mode: wire.ModeAttach, Session: name, Role: opts.role, Replay: opts.replay, Whole: true}
	s, err := a.Client.Attach(ctx, req, r.streams(client.Streams{}))
	if err != nil {
		return err
	}
	out := os.Stdout
	if file != "-" {
		if out, err = newRecording(file); err != nil {
			abandon(ctx, s)
			return err
		}
	}
	start := time.Now()
	if err := r.begin(out, header(s, host)); err != nil {
		fail(err)
	}
	defer showStatus(host, s, opts)()
	if file != "-" || !term.IsTerminal(int(os.Stdout.Fd())) {
		say(recordingNow, s.Name(), place(host))
	}
	status, err := s.Run(ctx)
	if err := r.end(err == nil, status); err != nil {
		return fmt.Errorf("%s: %w", file, reason(err))
	}
	if err != nil && !errors.Is(err, client.ErrLeft) {
		return explainEnd(err, host, "")
	}
	var signaled *reach.SignalError
	if errors.As(context.Cause(ctx), &signaled) && signaled.Signal != syscall.SIGINT {
		return signaled
	}
	if file != "-" {
		say(recordedFor, duration(time.Since(start)), file)
	}
	return r.complete()
}

// abandon leaves a session that does not run.
func abandon(ctx context.Context, s *client.Session) {
	s.Leave()
	_, _ = s.Run(ctx) // which returns ErrLeft
}

// An ownRecording is the recording of a session on our terminal, if the setting record says so.
type ownRecording struct {
	recorder
	print func(text string) // shows a text in the session
	dir   string            // empty if the session is not recorded
}

// prepareRecording makes the directory of recordings: if that fails, there shall be no session that
// is not recorded.
func prepareRecording(settings *configs.Client, skips bool, print func(string)) (*ownRecording, error) {
	o := &ownRecording{print: print}
	o.skips = skips
	if settings.Record == "" {
		return o, nil
	}
	o.dir = expandHome(settings.Record)
	o.failed = func(err error) { print(fmt.Sprintf(recordingFailed, o.file.Name(), err)) }
	err := os.MkdirAll(o.dir, 0o700)
	if err == nil {
		err = writable(o.dir)
	}
	if err != nil {
		return nil, reach.WithHint(fmt.Errorf("%s: %w", o.dir, reason(err)), recordsThere)
	}
	return o, nil
}

// start begins the recording of a session that was attached.
func (o *ownRecording) start(s *client.Session, host string) error {
	if o.dir == "" {
		return nil
	}
	file, err := recordingFile(o.dir, time.Now(), s.Name(), host)
	if err == nil {
		err = o.begin(file, header(s, host))
	}
	if err != nil {
		return reach.WithHint(fmt.Errorf("%s: %w", o.dir, reason(err)), recordsThere)
	}
	return nil
}

// finish ends the recording, and says where it is.
func (o *ownRecording) finish(ended bool, status int) {
	if o.dir == "" {
		return
	}
	if err := o.end(ended, status); err != nil {
		say(recordingFailed, o.file.Name(), reason(err))
		return
	}
	say(recordedInto, o.file.Name())
}

// writable returns why no file can be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".qt-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// expandHome replaces ~ at the start of a file's name.
func expandHome(file string) string {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(file, "~/"); ok && err == nil {
		return filepath.Join(home, rest)
	}
	return file
}

// reason returns an error of a file without its operation and name.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
