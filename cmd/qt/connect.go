package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/cmd/qt/internal/recording"
	"github.com/quicterm/quicterm/cmd/qt/internal/status"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/clipboard"
	"github.com/quicterm/quicterm/quicterm/client/offers"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func connectCommand() *cobra.Command {
	var opts options
	var name, size, dir string
	var env []string
	var forceTTY, noTTY bool
	c := &cobra.Command{
		Use:   "connect [flags] [user@]host [command args...]",
		Short: "Open a session, or run a command in one",
		Long: `Open a session on a host. Without a command, it runs your login shell on a
terminal. With a command, it runs that without a terminal: input, output and
errors are passed on unchanged, and the exit status is the command's.
Everything after the host is the command. The login shell runs it.

With -d, start the session without attaching to it, and print its name. It has a terminal, also
for a command, whose output and exit status the server keeps: qt ls lists the status, qt peek
shows the screen, and qt attach exits with it. With --json, print an object: id, name, host.

The server must accept a variable of --env by its setting accept_env. --env and --cwd are for a
new session: one that exists keeps what it has.`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if forceTTY && noTTY {
				return errors.New("-t and -T exclude each other")
			}
			if name == "" && c.Flags().Changed("replay") {
				return errors.New("--replay is about a session that exists: name it with -s")
			}
			if !opts.detach && (size != "" || opts.json) {
				return errors.New("--size and --json are for a session that is started with -d")
			}
			if opts.detach && len(opts.forward.specs) > 0 {
				return errors.New("-d leaves at once, and forwards nothing: qt forward does, without a session")
			}
			if opts.detach && noTTY {
				return errors.New("-d and -T exclude each other: only a session with a terminal is kept without a client")
			}
			command := args[1:]
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			req := &wire.Attach{Session: name, Command: strings.Join(command, " "), Dir: dir}
			var err error
			if req.Env, err = parseEnv(env); err != nil {
				return err
			}
			req.Required = uint8(len(req.Env))
			if opts.detach {
				req.Size, err = parseSize(cmp.Or(size, "80x24"))
			} else if name != "" {
				req.Mode = wire.ModeAttachOrCreate
			}
			if err != nil {
				return err
			}
			if opts.forward.only {
				return runForward(c.Context(), args[0], &opts)
			}
			req.PTY = opts.detach || forceTTY || !noTTY && req.Command == "" && term.IsTerminal(int(os.Stdin.Fd()))
			return runSession(c.Context(), args[0], &opts, req)
		},
	}
	c.Flags().SetInterspersed(false) // what follows the host is the command
	c.SetFlagErrorFunc(sshFlagError)
	addSessionFlags(c, &opts)
	addPredictFlag(c, &opts)
	c.Flags().StringVarP(&name, "session", "s", "", "attach to the session with this `name`, or create it")
	c.Flags().BoolVarP(&forceTTY, "tty", "t", false, "run a command on a terminal")
	c.Flags().BoolVarP(&noTTY, "no-tty", "T", false, "run a shell without a terminal")
	c.Flags().BoolVarP(&opts.detach, "detach", "d", false, "start the session without attaching to it, and print its name")
	c.Flags().StringVar(&size, "size", "", "with -d, the `size` of the terminal (default: 80x24)")
	c.Flags().BoolVar(&opts.json, "json", false, "with -d, print JSON")
	opts.forward.add(c)
	opts.forward.addAgent(c)
	c.Flags().BoolVarP(&opts.forward.only, "no-session", "N", false, "open no session, only forward, as qt forward")
	c.Flags().StringArrayVar(&env, "env", nil, "`NAME=VALUE`: set a variable in a new session; may be repeated")
	c.Flags().StringVar(&dir, "cwd", "", "`directory` in which a new session starts, from the home directory on")
	complete(c, &opts, hostNames)
	return c
}

// sshFlagError explains flags of ssh that qt connect does not have: what they are for works by ssh, through qt.
func sshFlagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if name := unknown.GetSpecifiedName(); len(name) == 1 && strings.Contains(sshFlags, name) {
			return fmt.Errorf(flagOfSSH, name)
		}
	}
	return flagError(c, err)
}

// sshFlags are the letters of ssh's flags that qt connect does not have.
const sshFlags = "1246aBbCcEeGgIJKkMmnOoPQqSVWwXxYyf"

func attachCommand() *cobra.Command {
	var opts options
	var share bool
	var size string
	c := &cobra.Command{
		Use:   "attach [flags] [[user@]host [session]]",
		Short: "Attach to a session: the given one, or one from a list",
		Long: `Attach to a session on a host, or on this machine if none is given. If the session is not
named and there is more than one, choose from a list. It is taken over from the client that
is attached, unless you share it: then both can type. A shared session keeps its size until
you take it by ~= or --size own, or the client whose terminal it is of leaves; in a terminal
of another size you see a window that follows the cursor.`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if share {
				opts.role = wire.RoleShare
			}
			if c.Flags().Changed("size") && size != "own" {
				return errors.New("--size must be own")
			}
			opts.ownSize = size == "own"
			return runAttach(c, args, &opts)
		},
	}
	addSessionFlags(c, &opts)
	addPredictFlag(c, &opts)
	opts.forward.addAgent(c)
	c.Flags().BoolVar(&share, "share", false, "type beside the client that is attached, and do not take the session over")
	c.Flags().StringVar(&size, "size", "",
		"whose size the session has: `own` is that of this terminal, also if you share the session")
	complete(c, &opts, hostNames, sessionNames)
	return c
}

// runAttach attaches to a session that exists, in the role of the options.
func runAttach(c *cobra.Command, args []string, opts *options) error {
	host, rest := splitHost(args)
	req := &wire.Attach{Mode: wire.ModeAttach, Session: strings.Join(rest, ""), PTY: true}
	return runSession(c.Context(), host, opts, req)
}

// runSession attaches to a session, and returns when it has ended or this client has left it.
func runSession(ctx context.Context, host string, opts *options, req *wire.Attach) error {
	// When the reader of our output is gone, the remote program gets the error,
	// and qt does not end by the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// What a session does is short, and waits for others: a second processor costs more time to wake up
	// than it saves.
	runtime.GOMAXPROCS(1)
	own := req.Env
	return retry(ctx, host, func() error {
		open := func(f reach.Call) error { return reach.With(ctx, host, &opts.Options, f) }
		if req.Mode == wire.ModeAttach {
			if req.Session != "" && !onTerminal() {
				return fmt.Errorf(needsTerminal, verb(opts.role))
			}
			open = func(f reach.Call) error { return withSession(ctx, host, &req.Session, opts, f) }
		}
		return open(func(ctx context.Context, a *reach.Access) error {
			req.Env = a.Environment(own)
			if req.PTY && req.Mode != wire.ModeAttach {
				req.Terminfo = reach.Terminfo(req.Env)
			}
			asks := req.PTY && onTerminal() && len(cmp.Or(opts.escape, a.Settings.EscapeChar)) == 1
			if err := opts.forward.checkConfirm(asks || opts.detach); err != nil {
				return err
			}
			if opts.detach {
				req.Agent = opts.forward.laterAgent()
				return start(ctx, a, host, opts, req)
			}
			var err error
			if opts.forwards, err = startForwards(ctx, a, opts); err != nil {
				return err
			}
			defer opts.forwards.Close()
			req.Agent = opts.forwards.AgentID()
			if req.PTY {
				req.Role, req.Own, req.Replay, req.Skip = opts.role, opts.ownSize, opts.replay, a.Settings.Flood == "skip"
				return runTerminal(ctx, a, host, opts, req)
			}
			return runPipe(ctx, a, host, opts, req)
		})
	})
}

const (
	// retryFor is how long an attach is repeated whose connection was lost before the
	// answer: the session may run, and only this client can continue it.
	retryFor = time.Minute

	// firstPause and longestPause bound the time between two attempts, which doubles: each may be
	// a login by ssh.
	firstPause   = 500 * time.Millisecond
	longestPause = 16 * firstPause
)

// retry calls f, and again while its connection is lost before the server has answered, or
// there is no other connection after that.
func retry(ctx context.Context, host string, f func() error) error {
	err := f()
	var brokenOff *client.BrokenOffError
	if !errors.As(err, &brokenOff) {
		return err
	}
	say(askingAgain, host, retryFor)
	pause := firstPause
	for start := time.Now(); time.Since(start) < retryFor; pause = min(2*pause, longestPause) {
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

// predictModes are the values of the setting predict.
var predictModes = map[string]predict.Mode{
	"adaptive": predict.Adaptive, "always": predict.Always, "never": predict.Never,
}

// runTerminal runs a session on our terminal.
func runTerminal(ctx context.Context, a *reach.Access, host string, opts *options, req *wire.Attach) error {
	skips := req.Skip || opts.role.ReadOnly()
	predicts := predictModes[cmp.Or(opts.predict, a.Settings.Predict)]
	if opts.role.ReadOnly() {
		predicts = predict.Never
	}
	config := terminal.Config{
		In:      os.Stdin,
		Out:     os.Stdout,
		Escape:  cmp.Or(opts.escape, a.Settings.EscapeChar),
		Predict: predicts,
		Host:    host,
		Role:    opts.role,
		Skips:   skips,
		Needs:   a.Needs,
		Status:  func(st client.Status) string { return status.New(host, st, opts.forwards).Text(time.Now()) },
	}
	if opts.forwards != nil {
		config.Forwards = opts.forwards.Menu
	}
	if !opts.role.ReadOnly() {
		config.Paste = func(ctx context.Context, say func(string)) (string, error) {
			return clipboard.Paste(ctx, a.Client, say)
		}
	}
	var t *terminal.Terminal
	if !opts.role.ReadOnly() && !a.Target.Local && len(config.Escape) == 1 {
		say := func(text string) { t.Notice(text) }
		offered := &offers.Offers{Client: a.Client, Host: host, Say: say, Key: config.Escape + "<"}
		config.Offers, config.Offered = offered.Menu, offered.Add
		opts.forwards.ConfirmBy(offered.Ask)
	}
	t = terminal.New(config)
	opts.forwards.Tell(t.Print)
	own, err := recording.Prepare(a.Settings, skips, t.Print)
	if err != nil {
		return err
	}
	req.Size = t.Size()
	var streams client.Streams
	var watch terminal.Watch
	if opts.role.ReadOnly() {
		watch = t.Watch()
		streams = watch.Streams()
	} else {
		streams = t.Streams()
		if opts.forwards != nil && a.Settings.ForwardPorts == "ask" {
			streams.Ports = func(ports []uint16) { t.Ports(opts.forwards.Offer(ports)) }
		}
	}
	s, err := a.Client.Attach(ctx, req, own.Streams(streams))
	if lost := lostOf(err); lost != nil {
		if err := printLost(os.Stdout, host, opts, lost); err != nil {
			return err
		}
		return exitError(255) // there is no session to attach to
	}
	if err != nil {
		return err
	}
	if n := s.Unseen(); n > 0 {
		say(linesUnseen, n, host, s.Name())
	}
	var use terminal.Session = s
	if opts.role.ReadOnly() {
		use = watch.Session(s)
	}
	if err := own.Start(s, host); err != nil {
		abandon(ctx, s)
		return err
	}
	defer showStatus(host, s, opts)()
	// A raw terminal sends no signals: these come from other processes.
	ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	status, err := t.Run(ctx, use, req.Size)
	own.Finish(err == nil, status)
	if errors.Is(err, client.ErrLeft) {
		if s.Status().Unacked > 0 {
			defer say(inputLost)
		}
		var signaled *reach.SignalError
		if errors.As(context.Cause(ctx), &signaled) {
			return &reach.SignalError{Signal: signaled.Signal, Effect: sessionContinues + resumeCommand(host, opts, s.Name())}
		}
		say("%s", left(host, opts, s.Name()))
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

// contactLost reports whether an error says that a server is not reached now, and may be later.
func contactLost(err error) bool {
	var brokenOff *client.BrokenOffError
	var unreachable *client.UnreachableError
	var login *bootstrap.LoginError
	var unresolved *net.DNSError
	return errors.As(err, &brokenOff) || errors.As(err, &unreachable) || errors.Is(err, client.ErrBusy) ||
		errors.As(err, &unresolved) || errors.As(err, &login) && login.Unreachable()
}
