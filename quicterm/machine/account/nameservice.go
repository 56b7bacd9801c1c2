//go:build linux || darwin

package account

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/quicterm/quicterm/quicterm/machine/command"
	"github.com/quicterm/quicterm/quicterm/quota"
)

// A NameService looks accounts up in the files of this machine, and in the directory
// services that it is configured for (nsswitch.conf(5)). The zero value is ready to use. It
// is safe for concurrent use.
//
// Anybody can make a server look up any name, so the answers of the system's commands are
// kept, those that there is no such account as well, and only some commands run at a time.
type NameService struct {
	// Dirs are the directories of the commands; nil means those of the system. PATH is
	// not used.
	Dirs []string

	mu      sync.Mutex
	answers map[string]*answer   // by command line
	turns   *quota.Turns[string] // of sources, for commands that look for a name that may not exist
	starts  *rate.Limiter        // of these commands
}

const (
	// lookupTimeout bounds how long the name service may take.
	lookupTimeout = 10 * time.Second

	// knownTime and unknownTime are how long an answer is kept: of an account, and that
	// there is none. A change of the local files ends both at once; one of a directory
	// service is seen after this time.
	knownTime, unknownTime = time.Minute, 10 * time.Second

	// maxAnswers bounds how many answers are kept, some hundred bytes each.
	maxAnswers = 1024

	// maxCommands bounds how many commands run at a time for names that were not found
	// before, and sourceCommands those of one source. commandRate bounds how many start per
	// second, and commandBurst how many at once. A machine finds some hundred names per second;
	// a server with a login of a new name more often than this has its clients wait.
	maxCommands, sourceCommands = 4, 2
	commandRate, commandBurst   = 20, 40
)

type sourceKey struct{}

// WithSource returns a context for lookups on behalf of a source of the network: lookups of
// many unknown names by some sources delay those of another one little.
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

func sourceOf(ctx context.Context) string {
	source, _ := ctx.Value(sourceKey{}).(string)
	return source
}

// An answer is what a command of the system printed.
type answer struct {
	done   chan struct{} // closed when out and err are set
	out    []byte
	err    error
	files  string    // the state of the local files when the command started
	until  time.Time // when it is no longer valid; set with out
	asking int       // callers that wait for it
	cancel func()    // ends the command

	turn *quota.Turn[string] // that it waits for or has; nil if it needs none
}

// fresh reports whether an answer is still to come, or valid.
func (a *answer) fresh(now time.Time, files string) bool {
	return !a.ended() || now.Before(a.until) && a.files == files
}

func (a *answer) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// systemDirs are the directories that only root can change and that have the commands.
var systemDirs = []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/run/current-system/sw/bin"}

func (n *NameService) find(command string) (string, error) {
	dirs := n.Dirs
	if dirs == nil {
		dirs = systemDirs
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, command)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", command, fs.ErrNotExist)
}

// localFiles describes the state of the files that answers depend on.
func localFiles() string {
	var b strings.Builder
	for _, file := range []string{"/etc/passwd", "/etc/group", "/etc/nsswitch.conf"} {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintln(&b, info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// ask returns what a command prints. Callers that ask the same at the same time share a
// command. It blocks until the answer is there or ctx ends. An error that wraps
// exec.ExitError is the command's own.
func (n *NameService) ask(ctx context.Context, command string, args ...string) ([]byte, error) {
	key := strings.Join(append([]string{command}, args...), " ")
	a := n.join(key, sourceOf(ctx), command, args)
	defer n.leave(key, a)
	select {
	case <-a.done:
		return a.out, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", command, context.Cause(ctx))
	}
}

// join returns the answer to a command, which it starts if there is no answer. The caller
// calls leave.
func (n *NameService) join(key, source, command string, args []string) *answer {
	now, files := time.Now(), localFiles()
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.answers[key]
	if old != nil && old.fresh(now, files) {
		if old.asking++; old.turn != nil && !old.ended() {
			n.turns.Share(old.turn, source)
		}
		return old
	}
	n.initLocked()
	if old == nil && len(n.answers) >= maxAnswers {
		n.forgetLocked(now, files)
	}
	late := fmt.Errorf("no answer within %v", lookupTimeout)
	ctx, cancel := context.WithTimeoutCause(context.Background(), lookupTimeout, late)
	a := &answer{done: make(chan struct{}), files: files, asking: 1, cancel: cancel}
	n.answers[key] = a
	if known := old != nil && old.err == nil; !known && command == "getent" {
		a.turn = n.turns.Enter(source)
	}
	go func() {
		defer cancel()
		out, err := n.run(ctx, a.turn, command, args)
		keep := time.Duration(0)
		var exit *exec.ExitError
		switch {
		case err == nil:
			keep = knownTime
		case errors.As(err, &exit), errors.Is(err, fs.ErrNotExist):
			keep = unknownTime
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		a.out, a.err, a.until = out, err, time.Now().Add(keep)
		close(a.done)
		if keep == 0 && n.answers[key] == a {
			delete(n.answers, key)
		}
	}()
	return a
}

func (n *NameService) initLocked() {
	if n.answers == nil {
		n.answers = make(map[string]*answer)
		n.turns = quota.NewTurns[string](maxCommands, sourceCommands)
		n.starts = rate.NewLimiter(commandRate, commandBurst)
	}
}

// leave ends a caller's wait for an answer. Without callers its command ends.
func (n *NameService) leave(key string, a *answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.asking--; a.asking > 0 {
		return
	}
	a.cancel()
	if !a.ended() && n.answers[key] == a {
		delete(n.answers, key)
	}
}

// forgetLocked makes room for an answer: it drops half of the answers, first of all those
// that there is no such account, then those that are no longer valid.
func (n *NameService) forgetLocked(now time.Time, files string) {
	for _, drop := range []func(*answer) bool{
		func(a *answer) bool { return a.err != nil },
		func(a *answer) bool { return !a.fresh(now, files) },
		func(*answer) bool { return true },
	} {
		for key, a := range n.answers {
			if len(n.answers) > maxAnswers/2 && a.asking == 0 && drop(a) {
				delete(n.answers, key)
			}
		}
	}
}

// run runs a command of the system, whose environment is empty, and returns what it
// prints. When ctx ends, it is killed. Before, it waits for its turn unless that is nil. A panic
// is an error: nobody asks for this command alone.
func (n *NameService) run(
	ctx context.Context, turn *quota.Turn[string], name string, args []string,
) (out []byte, err error) {
	defer func() {
		if value := recover(); value != nil {
			out, err = nil, fmt.Errorf("%s: panic: %v\n%.4096s", name, value, debug.Stack())
		}
	}()
	if turn != nil {
		defer n.turns.Leave(turn)
		if err := n.await(ctx, turn); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	path, err := n.find(name)
	if err != nil {
		return nil, err
	}
	out, _, err = command.Run(ctx, nil, path, args...)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return out, err
}

// await blocks until a command may start.
func (n *NameService) await(ctx context.Context, turn *quota.Turn[string]) error {
	select {
	case <-turn.Ready():
		return n.starts.Wait(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
