package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/predict"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// addPathFlags adds the flags that say which paths a session uses.
func addPathFlags(c *cobra.Command, opts *options) {
	c.Flags().BoolVar(&opts.redundant, "redundant", false, "send everything over two network interfaces (see the setting paths)")
}

func connectCommand() *cobra.Command {
	var opts options
	var name string
	var forceTTY, noTTY bool
	c := &cobra.Command{
		Use:   "connect [flags] [user@]host [command args...]",
		Short: "Open a session, or run a command in one",
		Long: `Open a session on a host. Without a command, it runs your login shell on a
terminal. With a command, it runs that without a terminal: input, output and
errors are passed on unchanged, and the exit status is the command's.
Everything after the host is the command. The login shell runs it.`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if forceTTY && noTTY {
				return errors.New("-t and -T exclude each other")
			}
			if name == "" && c.Flags().Changed("replay") {
				return errors.New("--replay is about a session that exists: name it with -s")
			}
			command := args[1:]
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			req := &wire.Attach{Session: name, Command: strings.Join(command, " ")}
			if name != "" {
				req.Mode = wire.ModeAttachOrCreate
			}
			req.PTY = forceTTY || !noTTY && req.Command == "" && term.IsTerminal(int(os.Stdin.Fd()))
			return offerInstall(c.Context(), args[0], &opts, func() error {
				return runSession(c.Context(), args[0], &opts, req)
			})
		},
	}
	c.Flags().SetInterspersed(false) // what follows the host is the command
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	addReplayFlag(c, &opts)
	addPredictFlag(c, &opts)
	c.Flags().StringVarP(&name, "session", "s", "", "attach to the session with this `name`, or create it")
	c.Flags().BoolVarP(&forceTTY, "tty", "t", false, "run a command on a terminal")
	c.Flags().BoolVarP(&noTTY, "no-tty", "T", false, "run a shell without a terminal")
	complete(c, &opts, hostNames)
	return c
}

func attachCommand() *cobra.Command {
	var opts options
	var share bool
	c := &cobra.Command{
		Use:   "attach [flags] [user@]host [session]",
		Short: "Attach to a session: the given one, or the one that was detached last",
		Long: `Attach to a session: the given one, or the one that was detached last. It is
taken over from the client that is attached, unless you share it: then both
can type. The terminal has the size of the one that attached last.`,
		Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if share {
				opts.role = wire.RoleShare
			}
			return runAttach(c, args, &opts)
		},
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	addReplayFlag(c, &opts)
	addPredictFlag(c, &opts)
	c.Flags().BoolVar(&share, "share", false, "type beside the client that is attached, and do not take the session over")
	complete(c, &opts, hostNames, sessionNames)
	return c
}

// runAttach attaches to a session that exists, in the role of the options.
func runAttach(c *cobra.Command, args []string, opts *options) error {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return errors.New(c.Name() + " needs a terminal")
	}
	req := &wire.Attach{Mode: wire.ModeAttach, PTY: true}
	if len(args) > 1 {
		req.Session = args[1]
	}
	return runSession(c.Context(), args[0], opts, req)
}

// runSession attaches to a session, and returns when it has ended or this client has left it.
func runSession(ctx context.Context, host string, opts *options, req *wire.Attach) error {
	// When the reader of our output is gone, the remote program gets the error,
	// and qt does not end by the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// What a session does is short, and waits for others: a second processor costs more time to wake up
	// than it saves.
	runtime.GOMAXPROCS(1)
	return persist(ctx, host, func() error {
		return withClient(ctx, host, opts, func(ctx context.Context, a *access) error {
			req.Env = sendEnv(a.settings.SendEnv)
			if req.PTY {
				req.Role, req.Replay, req.Skip = opts.role, opts.replay, a.settings.Flood == "skip"
				return runTerminal(ctx, a, host, opts, req)
			}
			return runPipe(ctx, a, host, opts, req)
		})
	})
}

const (
	// persistFor is how long an attach is repeated whose connection was lost before the
	// answer: the session may run, and only this client can continue it.
	persistFor = time.Minute

	// firstPause and longestPause bound the time between two attempts, which doubles: each may be
	// a login by ssh.
	firstPause, longestPause = 500 * time.Millisecond, 8 * time.Second
)

// persist calls f, and again while its connection is lost before the server has answered, or
// there is no other connection after that.
func persist(ctx context.Context, host string, f func() error) error {
	err := f()
	var brokenOff *client.BrokenOffError
	if !errors.As(err, &brokenOff) {
		return err
	}
	say(askingAgain, host, persistFor)
	pause := firstPause
	for start := time.Now(); time.Since(start) < persistFor; pause = min(2*pause, longestPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err = f(); !contactLost(err) {
			return err
		}
	}
	return err
}

// sendEnv returns the environment variables whose names match a pattern, as many as a session may have. One
// that does not fit is left out.
func sendEnv(patterns []string) [][2]string {
	var env [][2]string
	left := wire.MaxEnvBytes
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		for _, p := range patterns {
			if ok, err := path.Match(p, name); err == nil && ok && len(env) < wire.MaxEnv && len(v) <= left {
				left -= len(v)
				env = append(env, [2]string{name, value})
				break
			}
		}
	}
	return env
}

// runTerminal runs a session on our terminal.
func runTerminal(ctx context.Context, a *access, host string, opts *options, req *wire.Attach) error {
	skips := req.Skip || opts.role.ReadOnly()
	predicts := predictModes[a.settings.Predict]
	if opts.role.ReadOnly() {
		predicts = predict.Never
	}
	t := terminal.New(terminal.Config{
		In:       os.Stdin,
		Out:      os.Stdout,
		Escape:   a.settings.EscapeChar,
		Predict:  predicts,
		Messages: messages{host, opts.role, skips, a.needs},
	})
	recording, err := prepareRecording(a.settings, skips, t.Print)
	if err != nil {
		return err
	}
	req.Size = t.Size()
	streams := t.Streams()
	var watch *terminal.Watch
	if opts.role.ReadOnly() {
		watch = t.Watch()
		streams = watch.Streams()
	}
	s, err := a.client.Attach(ctx, req, recording.streams(streams))
	if err != nil {
		return err
	}
	if n := s.Unseen(); n > 0 {
		say(linesUnseen, n, host, s.Name())
	}
	var use terminal.Session = s
	if watch != nil {
		use = watch.Session(s)
	}
	use, err = recording.start(s, host, use)
	if err != nil {
		abandon(ctx, s)
		return err
	}
	defer a.observe(s)()
	defer showStatus(host, s, opts.verbose)()
	// A raw terminal sends no signals: these come from other processes.
	ctx, stop := untilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	status, err := t.Run(ctx, use, req.Size)
	recording.finish(err == nil, status)
	if errors.Is(err, client.ErrLeft) {
		if s.Status().Unacked > 0 {
			defer say(inputLost)
		}
		var signaled *signalError
		if errors.As(context.Cause(ctx), &signaled) {
			return &signalError{signaled.signal, sessionContinues + resumeCommand(host, opts, s.Name())}
		}
		say("%s", detached(resumeCommand(host, opts, s.Name())))
		return nil
	}
	return result(host, opts, s, status, err)
}

// result returns the error by which qt ends after a session, and tells why the session
// ended if its program did not end by itself.
func result(host string, opts *options, s *client.Session, status int, err error) error {
	if err != nil {
		return explainEnd(err, host, resumeCommand(host, opts, s.Name()))
	}
	if why := whyEnded(s.Name(), host, s.Exit(), time.Now()); why != "" {
		say("%s", why)
	}
	if status != 0 {
		return exitError(status)
	}
	return nil
}
