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
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/quicterm/quicterm/quicterm/machine/command"
	"github.com/quicterm/quicterm/quicterm/quota"
)

// A NameService looks accounts up in the files of this machine, and in the directory services that it is configured
// for (nsswitch.conf(5)). The zero value is ready to use. It is safe for concurrent use.
//
// Anybody can make a server look up any name, so the answers of the system's commands are
// kept, those that there is no such account as well and apart, and only some commands run at a time.
type NameService struct {
	// Dirs are the directories of the commands; nil means those of the system. PATH is not used.
	Dirs []string

	once   sync.Once
	turns  *quota.Turns[string] // of sources, for commands that look for a name that may not exist
	starts *rate.Limiter        // of these commands
	same   *quota.Turns[string] // one a command line

	mu             sync.Mutex
	found, missing quota.Recent[string, *answer] // by command line; found: it had an answer once
}

const (
	// lookupTimeout bounds how long the name service may take, also for those who have asked the same before.
	lookupTimeout = command.Patience

	// knownTime and unknownTime are how long an answer is kept: of an account, and that there is none, as long as it may
	// take to find that. A change of the local files ends both at once; one of a directory service is seen after this
	// time.
	knownTime   = time.Minute
	unknownTime = lookupTimeout

	// maxCommands bounds how many commands run at a time for names that were not found
	// before, and sourceCommands those of one source. commandRate bounds how many start per
	// second, and commandBurst how many at once. A machine finds some hundred names per second;
	// a server with a login of a new name more often than this has its clients wait.
	maxCommands, sourceCommands = 4, 2
	commandRate, commandBurst   = 20, 40
)

type sourceKey struct{}

// WithSource returns a context for lookups on behalf of a source, such as one of the network: lookups of
// many unknown names by some sources delay those of another one little.
func WithSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// SourceOf returns the source of a context, or nothing.
func SourceOf(ctx context.Context) string {
	source, _ := ctx.Value(sourceKey{}).(string)
	return source
}

// An answer is what a command of the system printed.
type answer struct {
	out   []byte
	err   error
	files string    // the state of the local files when the command started
	until time.Time // when it is no longer valid
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

// ask returns what a command prints. Callers that ask the same at the same time share its answer. It blocks until that
// is there or ctx ends, which ends the command. An error that wraps exec.ExitError is the command's own.
func (n *NameService) ask(ctx context.Context, name string, args ...string) (out []byte, err error) {
	n.once.Do(func() {
		n.turns, n.same = quota.NewTurns[string](maxCommands, sourceCommands), quota.NewTurns[string](0, 1)
		n.starts = rate.NewLimiter(commandRate, commandBurst)
	})
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	line := append([]string{name}, args...)
	a, known := n.kept(strings.Join(line, " "))
	ctx, cancel := context.WithTimeoutCause(ctx, lookupTimeout, fmt.Errorf("no answer within %v", lookupTimeout))
	defer cancel()
	for a == nil {
		if a, err = n.askOnce(ctx, line, !known && name == "getent"); err != nil {
			return nil, err
		}
	}
	return a.out, a.err
}

// askOnce runs a command, or waits while it runs for another caller: then it returns nil if that one has no answer.
func (n *NameService) askOnce(ctx context.Context, line []string, limited bool) (a *answer, err error) {
	key, end := strings.Join(line, " "), func() {}
	if limited {
		if end, err = n.turns.Take(ctx, SourceOf(ctx)); err != nil {
			return nil, err
		}
	}
	endSame, first := n.same.Try(key)
	if !first {
		end() // who waits for the same keeps nobody from asking for something else
		if endSame, err = n.same.Take(ctx, key); err == nil {
			endSame()
			a, _ = n.kept(key)
		}
		return a, err
	}
	ran := &answer{files: localFiles()}
	defer func() { command.WhenEnded(ran.err, func() { endSame(); end() }) }()
	if a, _ = n.kept(key); a != nil { // another caller has asked meanwhile
		return a, nil
	}
	if limited {
		if err := n.starts.Wait(ctx); err != nil {
			return nil, err
		}
	}
	ran.out, ran.err = n.run(ctx, line[0], line[1:])
	n.keep(key, ran)
	return ran, nil
}

// kept returns an answer that is valid, or nil, and whether the same was found before.
func (n *NameService) kept(key string) (a *answer, known bool) {
	files := localFiles()
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, known = n.found.Get(key); !known {
		a, _ = n.missing.Get(key)
	}
	if a == nil || a.files != files || !time.Now().Before(a.until) {
		return nil, known
	}
	return a, known
}

// keep keeps an answer, unless it says nothing. That there is no such account does not take the place of others that
// there are: anybody can ask for any name.
func (n *NameService) keep(key string, a *answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.found.Get(key)
	answers := &n.missing
	if known || a.err == nil {
		answers = &n.found
	}
	switch _, failed := errors.AsType[*exec.ExitError](a.err); {
	case a.err == nil:
		a.until = time.Now().Add(knownTime)
	case failed, errors.Is(a.err, fs.ErrNotExist):
		a.until = time.Now().Add(unknownTime)
	default:
		return
	}
	answers.Put(key, a)
}

// run runs a command of the system, whose environment is empty, and returns what it prints. When ctx ends, it is
// killed.
func (n *NameService) run(ctx context.Context, name string, args []string) ([]byte, error) {
	path, err := n.find(name)
	if err != nil {
		return nil, err
	}
	out, _, err := command.Run(ctx, nil, path, args...)
	return out, err
}
