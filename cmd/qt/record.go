package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/cmd/qt/internal/recording"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
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
	r := &recording.Recorder{Failed: fail, Skips: true}
	req := &wire.Attach{Mode: wire.ModeAttach, Session: name, Role: opts.role, Replay: opts.replay, Whole: true}
	s, err := a.Client.Attach(ctx, req, r.Streams(client.Streams{}))
	if err != nil {
		return err
	}
	out := os.Stdout
	if file != "-" {
		if out, err = recording.Create(file); err != nil {
			abandon(ctx, s)
			return err
		}
	}
	start := time.Now()
	if err := r.Begin(out, recording.Header(s, host)); err != nil {
		fail(err)
	}
	defer showStatus(host, s, opts)()
	if file != "-" || !term.IsTerminal(int(os.Stdout.Fd())) {
		say(recordingNow, s.Name(), reach.Place(host))
	}
	status, err := s.Run(ctx)
	if err := r.End(err == nil, status); err != nil {
		return fmt.Errorf("%s: %w", file, recording.Reason(err))
	}
	if err != nil && !errors.Is(err, client.ErrLeft) {
		return explainEnd(err, host, "")
	}
	var signaled *reach.SignalError
	if errors.As(context.Cause(ctx), &signaled) && signaled.Signal != syscall.SIGINT {
		return signaled
	}
	if file != "-" {
		say(recordedFor, terminal.Duration(time.Since(start)), file)
	}
	return r.Complete()
}

// abandon leaves a session that does not run.
func abandon(ctx context.Context, s *client.Session) {
	s.Leave()
	_, _ = s.Run(ctx) // which returns ErrLeft
}
