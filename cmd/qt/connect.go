package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate"
	"github.com/quicterm/quicterm/quicterm"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// addTargetFlags adds the flags that say how to find a server.
func addTargetFlags(c *cobra.Command, opts *options) {
	f := c.Flags()
	f.SetInterspersed(false)
	f.Uint16VarP(&opts.port, "port", "p", 0, "UDP `port` of the daemon (default: the setting port, 4433)")
	f.StringVarP(&opts.user, "login", "l", "", "`user` to log in as")
	f.StringArrayVarP(&opts.identities, "identity", "i", nil, "private key `file` to offer; may be repeated")
	f.StringVarP(&opts.config, "config", "F", "", "`file` to use instead of ssh's own configuration")
	f.BoolVarP(&opts.verbose, "verbose", "v", false, "tell on standard error what is done")
}

// addPathFlags adds the flags that say how a session keeps in touch.
func addPathFlags(c *cobra.Command, opts *options) {
	c.Flags().BoolVar(&opts.redundant, "redundant", false, "send everything over two network interfaces (the setting paths)")
}

func connectCommand() *cobra.Command {
	var opts options
	var name string
	var force, never bool
	c := &cobra.Command{
		Use:   "connect [flags] [user@]host [command args...]",
		Short: "Open a session, or run a command in one",
		Long: `Open a session on a host: a login shell on a terminal or, if a command is given,
that, without a terminal: its input, output and errors are passed on unchanged.
All that follows the host is the command. It is run by the login shell.`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if force && never {
				return errors.New("-t and -T exclude each other")
			}
			command := args[1:]
			if len(command) > 0 && command[0] == "--" {
				command = command[1:]
			}
			req := &wire.Attach{Session: name, Command: strings.Join(command, " ")}
			if name != "" {
				req.Mode = wire.ModeAttachOrCreate
			}
			req.PTY = force || !never && req.Command == "" && term.IsTerminal(int(os.Stdin.Fd()))
			return runSession(c.Context(), args[0], &opts, req)
		},
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	c.Flags().StringVarP(&name, "session", "s", "", "attach to the session of that `name`, made if it does not exist")
	c.Flags().BoolVarP(&force, "tty", "t", false, "give a command a terminal")
	c.Flags().BoolVarP(&never, "no-tty", "T", false, "give a shell no terminal")
	return c
}

func attachCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "attach [flags] [user@]host [session]",
		Short: "Attach to a session: the named one, or the latest that nobody is attached to",
		Args:  usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if !term.IsTerminal(int(os.Stdin.Fd())) {
				return errors.New("attach needs a terminal")
			}
			req := &wire.Attach{Mode: wire.ModeAttach, PTY: true}
			if len(args) > 1 {
				req.Session = args[1]
			}
			return runSession(c.Context(), args[0], &opts, req)
		},
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	return c
}

// runSession attaches to a session and stays until it is over for us.
func runSession(ctx context.Context, host string, opts *options, req *wire.Attach) error {
	// A reader of our output that goes away is news for the program, not the
	// end of us.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return with(ctx, host, opts, func(client *quicterm.Client, settings *configs.Client) error {
		req.Env = sendEnv(settings.SendEnv)
		if req.PTY {
			return runTerminal(ctx, client, settings, host, req, opts.verbose)
		}
		return runPipe(ctx, client, host, req, opts.verbose)
	})
}

// sendEnv returns our environment variables that match a pattern.
func sendEnv(patterns []string) [][2]string {
	var env [][2]string
	for _, v := range os.Environ() {
		name, value, _ := strings.Cut(v, "=")
		for _, p := range patterns {
			if ok, err := path.Match(p, name); err == nil && ok && len(env) < wire.MaxEnv {
				env = append(env, [2]string{name, value})
				break
			}
		}
	}
	return env
}

// runPipe runs a command without a terminal.
func runPipe(ctx context.Context, client *quicterm.Client, host string, req *wire.Attach, verbose bool) error {
	// Standard error stays open for our own words.
	s, err := client.Attach(ctx, req, quicterm.Streams{
		Stdout: os.Stdout,
		Stderr: struct{ io.Writer }{os.Stderr},
		// Whoever writes our input is to know. A read that blocks keeps it
		// open until there is something to read.
		InputClosed: func() { os.Stdin.Close() },
	})
	if err != nil {
		return err
	}
	defer showStatus(host, s, verbose)()
	unread := make(chan error, 1)
	go func() {
		_, err := io.Copy(s, os.Stdin)
		var failed *fs.PathError // of reading: writing has no path
		if errors.As(err, &failed) && !errors.Is(err, os.ErrClosed) {
			unread <- fmt.Errorf("read the input: %w", failed.Err)
		}
		s.CloseWrite()
	}()
	stop := passSignals(s)
	defer stop()
	status, err := s.Run(context.WithoutCancel(ctx))
	select {
	case failed := <-unread:
		err = errors.Join(failed, err)
	default:
	}
	return result(status, err)
}

// passSignals passes the first signal that would end us on to the command. A
// second one ends us and hangs the command up, and so does the end of our
// terminal at once.
func passSignals(s *quicterm.Session) (stop func()) {
	names := map[os.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP"}
	signals := make(chan os.Signal, 1)
	for sig := range names {
		signal.Notify(signals, sig)
	}
	done := make(chan struct{})
	go func() {
		for passed := false; ; passed = true {
			select {
			case sig := <-signals:
				if passed || sig == syscall.SIGHUP {
					s.Leave()
				} else {
					go s.Signal(names[sig]) // the input may have no room
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// runTerminal runs a program on our terminal.
func runTerminal(ctx context.Context, client *quicterm.Client, settings *configs.Client, host string, req *wire.Attach, verbose bool) error {
	fd := int(os.Stdin.Fd())
	req.Size = windowSize()
	out := newScreen(os.Stdout, true)
	s, err := client.Attach(ctx, req, quicterm.Streams{
		Stdout:   out,
		Replayed: out.live,
		Changed:  out.setLink,
		Lost: func(g session.Gap) {
			out.lost(g)
		},
	})
	if err != nil {
		return err
	}
	defer showStatus(host, s, verbose)()
	// A raw terminal sends no signals: these are from elsewhere.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	restore := out.restore
	raw := term.IsTerminal(fd)
	if raw {
		cooked, err := makeRaw(fd)
		if err != nil {
			return fmt.Errorf("terminal: %w", err)
		}
		restore = func() {
			out.restore()
			cooked()
		}
	}
	restore = sync.OnceFunc(restore)
	defer restore() // also when we panic
	guard := func() {
		if cause := recover(); cause != nil {
			restore()
			panic(cause)
		}
	}
	stopSizes := watchSize(func() {
		defer guard()
		s.Resize(sizeOf(windowSize()))
	})
	defer stopSizes()
	if size := windowSize(); size != req.Size { // logging in may take long
		s.Resize(sizeOf(size))
	}
	t := &typist{host: host, session: s, screen: out, escapes: newEscaper(settings.EscapeChar), raw: raw}
	go func() {
		defer guard()
		t.run(os.Stdin)
	}()
	status, err := s.Run(ctx)
	restore()
	comeBack := fmt.Sprintf("qt attach %s %s comes back", host, s.Name())
	switch left := errors.Is(err, quicterm.ErrLeft); {
	case left && ctx.Err() != nil:
		return fmt.Errorf("ended by a signal, the session is not: %s", comeBack)
	case left:
		say("detached: %s", comeBack)
		return nil
	}
	return result(status, err)
}

func result(status int, err error) error {
	if err != nil {
		return err
	}
	if status != 0 {
		return exitError(status)
	}
	return nil
}

// windowSize returns the size of our terminal, or a usual one without one.
func windowSize() [4]uint16 {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if size, ok := terminalSize(f); ok {
			return size
		}
	}
	return [4]uint16{80, 24}
}

func sizeOf(v [4]uint16) session.Size {
	return session.Size{Cols: v[0], Rows: v[1], XPixel: v[2], YPixel: v[3]}
}

// A typist passes on what is typed, but for the escapes.
type typist struct {
	host    string
	session *quicterm.Session
	screen  *screen
	escapes *escaper
	raw     bool // what is typed has no end
	ending  bool
}

func (t *typist) run(in io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			t.escapes.filter(buf[:n], func(b []byte) { t.session.Write(b) }, t.command)
		}
		if errors.Is(err, io.EOF) && !t.raw {
			t.session.CloseWrite()
			return
		}
		if err != nil { // the terminal is gone
			t.session.Leave()
			return
		}
	}
}

const help = `Escapes, at the start of a line:
 ~.  end the session, or leave it while there is no contact
 ~d  detach: the session lives on
 ~s  show the state of the connection
 ~n  skip output that is yet to come, and go on with the present
 ~?  this help
 ~~  send the character itself`

// command does what an escape asks for, if it is known.
func (t *typist) command(c byte) bool {
	switch c {
	case '.':
		if st := t.session.Status(); t.ending || st.Link.State != migrate.Live {
			t.session.Leave()
			break
		}
		t.ending = true // the second time we do not wait
		t.session.Signal("HUP")
	case 'd':
		t.session.Leave()
	case 's':
		t.screen.say("%s", newReport(t.host, t.session.Status()).text(time.Now()))
	case 'n':
		t.screen.skip()
		t.session.Skip()
	case '?':
		t.screen.say("%s", strings.ReplaceAll(help, "~", string(t.escapes.char)))
	default:
		return false
	}
	return true
}
