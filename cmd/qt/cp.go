package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/files"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/terminal"
)

func copyCommand() *cobra.Command {
	opts := options{forward: forwardFlags{none: true}}
	var o files.Options
	var quiet bool
	c := &cobra.Command{
		Use:   "cp [flags] file... [user@]host:[path]",
		Short: "Copy files to and from hosts",
		Long: `Copy files between this machine and hosts, as scp does: one or more to a path, of which those
with a host before them are there, from the home directory on. It survives what a session
survives: another network, an outage, a restart of the daemon.

A file has its name when all of it is there, and .qt.part behind that before. What was not
finished is continued with --resume. A link below a directory stays a link.
host:@SESSION:path is a path from where a session's program is now.`,
		Example: `  qt cp notes.txt server:
  qt cp -r anna@server:project/logs server:setup.sh .`,
		Args: usage(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error { return runCopy(c.Context(), args, &opts, o, quiet) },
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	c.Flags().BoolVarP(&o.Recursive, "recursive", "r", false, "copy directories, with all that is in them")
	c.Flags().BoolVar(&o.Preserve, "preserve", false, "keep times, and modes whatever the umask says")
	c.Flags().BoolVar(&o.Resume, "resume", false, "continue files that another copy has not finished")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "show no progress")
	complete(c, &opts, slices.Repeat([]completer{nil}, maxCompleted)...)
	return c
}

// maxCompleted bounds the files that complete: as many as a person names.
const maxCompleted = 50

// splitRemote splits what names a file of a host, as scp does: the host is before a colon, before any slash.
func splitRemote(arg string) (host, path string, ok bool) {
	i := strings.IndexByte(arg, ':')
	if end := strings.Index(arg, "]:"); strings.HasPrefix(arg[strings.LastIndexByte(arg[:max(i, 0)], '@')+1:], "[") && end > 0 {
		i = end + 1 // an address of IPv6
	}
	if i <= 0 || strings.Contains(arg[:i], "/") || runtime.GOOS == "windows" && i == 1 {
		return "", "", false
	}
	host = arg[:i]
	if at := strings.LastIndexByte(host, '@') + 1; strings.HasPrefix(host[at:], "[") {
		host = host[:at] + strings.Trim(host[at:], "[]")
	}
	return host, arg[i+1:], true
}

// runCopy copies all but the last of the arguments to that.
func runCopy(ctx context.Context, args []string, opts *options, o files.Options, quiet bool) error {
	ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	type opened struct {
		files  *files.Files
		client *client.Client
	}
	hosts := make(map[string]opened)
	var locations []files.Location
	var locate func(ctx context.Context) error // the arguments from the first one on that has no location
	locate = func(ctx context.Context) error {
		if len(locations) == len(args) {
			if len(hosts) == 0 {
				return errors.New("no file is on a host: write it as host:path")
			}
			return copyFiles(ctx, locations, o, quiet)
		}
		host, path, ok := splitRemote(args[len(locations)])
		if !ok {
			locations = append(locations, files.Location{Path: args[len(locations)]})
			return locate(ctx)
		}
		if h, ok := hosts[host]; ok {
			path, err := inSession(ctx, h.client, path)
			if err != nil {
				return err
			}
			locations = append(locations, files.Location{Files: h.files, Path: path})
			return locate(ctx)
		}
		return reach.With(ctx, host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
			f, err := files.Open(ctx, a.Client)
			if err != nil {
				return err
			}
			defer f.Close()
			f.Host = strings.TrimSuffix(args[len(locations)], path)
			hosts[host] = opened{f, a.Client}
			return locate(ctx)
		})
	}
	return locate(ctx)
}

// inSession returns a path of a host, of which @SESSION: in front means the directory of a session.
func inSession(ctx context.Context, c *client.Client, name string) (string, error) {
	session, rest, ok := strings.Cut(strings.TrimPrefix(name, "@"), ":")
	if !ok || !strings.HasPrefix(name, "@") {
		return name, nil
	}
	v, err := drive.Peek(ctx, c, session, 0)
	if err != nil {
		return "", err
	}
	if v.CWD == "" {
		return "", fmt.Errorf("session %s does not tell its directory: name the path from the home directory on", session)
	}
	if path.IsAbs(rest) {
		return rest, nil
	}
	return strings.TrimSuffix(v.CWD, "/") + "/" + rest, nil
}

// copyFiles copies all but the last location to that, and shows how far it is.
func copyFiles(ctx context.Context, locations []files.Location, o files.Options, quiet bool) error {
	var p files.Progress
	bar := newBar(os.Stderr, &p, quiet || !term.IsTerminal(int(os.Stderr.Fd())))
	o.Failed = func(line string) { bar.say(line) }
	last := len(locations) - 1
	err := files.Copy(ctx, locations[:last], locations[last], o, &p)
	bar.finish()
	var signaled *reach.SignalError
	switch {
	case errors.As(err, &signaled):
		return &reach.SignalError{Signal: signaled.Signal, Effect: copyStopped}
	case errors.Is(err, files.ErrIncomplete):
		return exitError(1)
	case errors.As(err, new(*files.EndedError)):
		return reach.WithHint(err, "--resume continues")
	}
	return err
}

// copyStopped says what a signal has left.
const copyStopped = "what is not whole ends in .qt.part, and --resume continues it"

// A bar shows on a terminal how far a copy is.
type bar struct {
	w       io.Writer
	p       *files.Progress
	quiet   bool
	started time.Time
	stop    chan struct{}
	stopped chan struct{}
	lines   chan string
}

// barTime is the time between two states of a bar.
const barTime = 200 * time.Millisecond

func newBar(w io.Writer, p *files.Progress, quiet bool) *bar {
	b := &bar{
		w: w, p: p, quiet: quiet, started: time.Now(),
		stop: make(chan struct{}), stopped: make(chan struct{}), lines: make(chan string),
	}
	go b.run()
	return b
}

func (b *bar) run() {
	defer close(b.stopped)
	tick := time.NewTicker(barTime)
	defer tick.Stop()
	shown := false
	clear := func() {
		if shown {
			fmt.Fprint(b.w, "\r\x1b[K")
		}
	}
	for {
		select {
		case line := <-b.lines:
			clear()
			shown = false
			say("%s", line)
		case <-tick.C:
			if !b.quiet {
				clear()
				fmt.Fprint(b.w, b.text(time.Since(b.started)))
				shown = true
			}
		case <-b.stop:
			clear()
			return
		}
	}
}

// say shows a line above the bar.
func (b *bar) say(line string) {
	select {
	case b.lines <- line:
	case <-b.stopped:
	}
}

// finish removes the bar.
func (b *bar) finish() {
	close(b.stop)
	<-b.stopped
}

// text returns the state of a copy, at a time after its start.
func (b *bar) text(after time.Duration) string {
	done, total := b.p.Bytes.Load(), b.p.TotalBytes.Load()
	rate := float64(done-b.p.Resumed.Load()) / after.Seconds()
	text := fmt.Sprintf("%s, %s/s", terminal.Bytes(uint64(done)), terminal.Bytes(uint64(max(rate, 0))))
	if b.p.Listed.Load() && total > 0 {
		text = fmt.Sprintf("%d %% of %s, %s/s", min(done*100/total, 100), terminal.Bytes(uint64(total)), terminal.Bytes(uint64(max(rate, 0))))
		if left := float64(max(total-done, 0)) / rate; rate > 0 && left < (100*time.Hour).Seconds() {
			text += fmt.Sprintf(", %v left", time.Duration(left*float64(time.Second)).Round(time.Second))
		}
	}
	if files := b.p.TotalFiles.Load(); files > 1 {
		text += fmt.Sprintf(", %d of %d files", b.p.Files.Load(), files)
	}
	return text
}
