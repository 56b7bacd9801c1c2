package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
)

// A hostEvent is an event as qt events --json prints it.
type hostEvent struct {
	Host string `json:"host"`
	drive.Event
}

// An eventPrinter does what qt events does with an event.
type eventPrinter struct {
	out     io.Writer
	asJSON  bool
	command string // or empty
	cutOff  bool   // out is a file whose last line a crash has cut off

	mu sync.Mutex // held while an event is printed and its command runs
}

func eventsCommand() *cobra.Command {
	var opts options
	p := new(eventPrinter)
	var since string
	c := &cobra.Command{
		Use:   "events [flags] [[user@]host...]",
		Short: "Tell what happens to your sessions on some hosts",
		Long: `Tell what happens to your sessions on some hosts, or on this machine, also to those that are started meanwhile.
It asks no questions: a login that needs a password or a touch fails. To a session's clients, qt events is one that
watches. Ctrl-C ends it.

With --json, print an object for each event: host, session (its name), id, number, time, event, and what the event has.

  attached, detached   client, role; a client that is away is detached after 10 s
  displaced            client, by
  resized              cols, rows, client (whose terminal has that size)
  title, cwd           text; cwd and cwdhost, as the shell tells them
  began, ended         a command, by the marks of its shell (qt shell-integration); status, seconds
  bell, notification   count; text
  prompt               program; the session's shell waits at its prompt
  waits                program; it waits for input, as the kernel says (on Linux)
  silent               program; nothing was printed for 10 s, and no program waits for input
  port-opened          port; a process of the session listens at it (on Linux), looked for while a client is there
  port-closed          port; none does any more
  exited, lost         status, text (why); the session is gone, and its end is not known
  omitted, unknown     count events were left out; the session cannot be followed: text says why

Any event may have missing, how many events before it the server does not keep any more, and has next, where the
output ended: an offset for qt tail. Numbers count the events of a session. --since continues where an earlier
output with --json has ended, without an event that is missing or comes twice: qt events --json --since FILE host >>FILE.
With an empty file it begins with all events that are kept.

--exec runs a command of the shell with an event on its standard input, as one line of JSON, and nothing of it in its
arguments or its environment. The next event waits until the command has ended, at last at the server, which keeps
10000 of a session. With --json too, an event is printed when its command has ended.`,
		RunE: func(c *cobra.Command, hosts []string) error {
			if len(hosts) == 0 {
				hosts = []string{reach.ThisMachine}
			}
			for _, host := range hosts {
				if _, _, err := reach.ParseTarget(host, &opts.Options); err != nil {
					return err
				}
			}
			p.out = c.OutOrStdout()
			var before map[string]map[string]drive.Event
			if since != "" {
				var err error
				if before, err = p.read(since); err != nil {
					return err
				}
			}
			opts.Unattended = true
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			err := p.followAll(ctx, hosts, &opts.Options, before)
			if ctx.Err() != nil && c.Context().Err() == nil {
				return nil
			}
			return err
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&p.asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&p.command, "exec", "", "run this `command` for each event, with the event on its standard input")
	c.Flags().StringVar(&since, "since", "", "continue behind the events in this `file`, which --json has printed")
	complete(c, &opts, hostNames)
	return c
}

// followAll follows the sessions of hosts until there is none that can be reached.
func (p *eventPrinter) followAll(
	ctx context.Context, hosts []string, opts *reach.Options, before map[string]map[string]drive.Event,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failed := make(chan error, len(hosts))
	var running sync.WaitGroup
	for _, host := range hosts {
		since := before[host]
		if before != nil && since == nil {
			since = make(map[string]drive.Event)
		}
		running.Go(func() {
			login := func(ctx context.Context, f func(context.Context, *client.Client) error) error {
				own := *opts
				return reach.With(ctx, host, &own, func(ctx context.Context, a *reach.Access) error { return f(ctx, a.Client) })
			}
			err := drive.Follow(ctx, login, since, func(e drive.Event) error {
				err := p.handle(ctx, hostEvent{host, e})
				if err != nil {
					stop(err)
				}
				return err
			})
			if ctx.Err() == nil && len(hosts) > 1 {
				reach.Complain(fmt.Errorf("%s is not followed: %w", host, err))
				err = exitError(failure)
			}
			failed <- err
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return <-failed
}

// maxLine bounds a line of the file of --since.
const maxLine = 64 << 10

// read returns the last event of each session in a file of events, by host and id.
func (p *eventPrinter) read(file string) (map[string]map[string]drive.Event, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	last := make(map[string]map[string]drive.Event)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	bad := false
	for lines.Scan() {
		var e hostEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.ID == "" {
			bad = true // such as one that a crash has cut off: its event comes again
			continue
		}
		if last[e.Host] == nil {
			last[e.Host] = make(map[string]drive.Event)
		}
		if e.Number == 0 {
			e.Number = last[e.Host][e.ID].Number
		}
		last[e.Host][e.ID] = e.Event
	}
	if bad && len(last) == 0 {
		return nil, fmt.Errorf("%s has no events of qt events --json", file)
	}
	p.cutOff = p.continues(f)
	return last, lines.Err()
}

// continues reports whether the output is a file that does not end with the end of a line.
func (p *eventPrinter) continues(f *os.File) bool {
	out, ok := p.out.(*os.File)
	if !ok {
		return false
	}
	from, err := f.Stat()
	to, outErr := out.Stat()
	if err != nil || outErr != nil || !os.SameFile(from, to) {
		return false
	}
	var end [1]byte
	_, err = f.ReadAt(end[:], from.Size()-1)
	return err == nil && end[0] != '\n'
}

// handle runs the command with an event, or prints it.
func (p *eventPrinter) handle(ctx context.Context, e hostEvent) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return err
	}
	if p.command != "" {
		if err := p.run(ctx, line.Bytes()); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			reach.Complain(fmt.Errorf("the command for an event has failed: %w", err))
		}
	}
	switch {
	case p.asJSON:
		text := line.Bytes()
		if p.cutOff {
			text = append([]byte("\n"), text...)
		}
		_, err := p.out.Write(text)
		p.cutOff = false
		return err
	case p.command == "":
		_, err := fmt.Fprintln(p.out, e.text())
		return err
	}
	return nil
}

// run runs the command.
func (p *eventPrinter) run(ctx context.Context, event []byte) error {
	shell := []string{"sh", "-c", p.command}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c", p.command}
	}
	c := exec.CommandContext(ctx, shell[0], shell[1:]...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(event), os.Stderr, os.Stderr
	c.WaitDelay = time.Second
	err := c.Run()
	if errors.Is(err, syscall.EPIPE) { // it has not read the event
		err = nil
	}
	return err
}

// text describes an event in a line.
func (e *hostEvent) text() string {
	words := []string{e.Time.Local().Format(time.DateTime), e.Host, e.Session, string(e.Kind)}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if e.Program != "" {
		add("%s", e.Program)
	}
	if e.Client != "" {
		add("%s", e.Client)
	}
	if e.Role != "" {
		add("(%s)", e.Role)
	}
	if e.By != "" {
		add("by %s", e.By)
	}
	if e.Cols > 0 {
		add("%dx%d", e.Cols, e.Rows)
	}
	if e.CWD != "" {
		add("%s", e.CWD)
	}
	if e.Status != nil {
		add("status %d", *e.Status)
	}
	if e.Seconds != nil {
		add("after %v", time.Duration(*e.Seconds*float64(time.Second)).Round(time.Millisecond))
	}
	if e.Count > 1 || e.Kind == drive.EventOmitted {
		add("%d times", e.Count)
	}
	if e.Port > 0 {
		add("%d", e.Port)
	}
	if e.Text != "" {
		add("%s", e.Text)
	}
	if e.Missing > 0 {
		add("(%d events before it are missing)", e.Missing)
	}
	return strings.Join(words, " ")
}
