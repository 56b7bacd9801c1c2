package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/quicterm/quicterm/quicterm/files"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxSmall bounds the small files that are copied at once, each with at most files.MaxPut bytes in memory: 5000 a
	// second at a round trip of 100 ms.
	maxSmall = 500

	// maxLarge bounds the larger ones, each with at most requestsPerFile requests.
	maxLarge = 4

	// maxListed bounds the directories that are listed at once.
	maxListed = 32
)

// Options say how to copy.
type Options struct {
	Recursive bool // directories, with all below them
	Preserve  bool // modes whatever the umask says, and times
	Resume    bool // continue the parts of files that another copy has left

	// Failed is called with each file that is not copied, as a line. It may be called by several goroutines at once.
	Failed func(line string)
}

// Progress counts what is copied. The totals grow while directories are listed.
type Progress struct {
	Files, Bytes           atomic.Int64 // that are done; of large files, what was sent of them
	TotalFiles, TotalBytes atomic.Int64
	Listed                 atomic.Bool // the totals are final
	Resumed                atomic.Int64
}

// ErrIncomplete is the error of a copy of which some files are missing: Failed was called with each.
var ErrIncomplete = errors.New("some files were not copied")

// A copier copies into one tree.
type copier struct {
	Options
	progress *Progress
	ctx      context.Context
	stop     context.CancelCauseFunc
	to       tree

	small, large chan struct{} // places
	work         sync.WaitGroup
	failed       atomic.Bool

	mu      sync.Mutex
	changed sync.Cond
	dirs    []job // to be listed
	listing int   // are being listed
	links   []job // made at the end, so that nothing goes through them
	made    []job // directories whose mode and time are set at the end
}

// A job is a file to copy.
type job struct {
	from tree
	name string // in from
	to   string
	info fs.FileInfo
}

func newCopier(
	ctx context.Context, stop context.CancelCauseFunc, to tree, o Options, p *Progress,
) *copier {
	c := &copier{
		Options: o, progress: p, to: to, small: make(chan struct{}, maxSmall), large: make(chan struct{}, maxLarge),
	}
	c.ctx, c.stop = ctx, stop
	c.changed.L = &c.mu
	return c
}

// run copies what was added, and returns when all is done. The copier is of no use then.
func (c *copier) run() error {
	defer context.AfterFunc(c.ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})()
	for range maxListed {
		c.work.Go(c.list)
	}
	c.work.Wait()
	for _, l := range c.links {
		c.finish(l, c.link(l))
	}
	slices.Reverse(c.made) // what is in a directory changes its time
	for _, d := range c.made {
		err := c.to.chmod(d.to, d.info.Mode().Perm())
		if err == nil {
			err = c.to.setTime(d.to, d.info)
		}
		if err != nil {
			c.fail(d, err)
		}
	}
	if err := context.Cause(c.ctx); err != nil {
		return err
	}
	if c.failed.Load() {
		return ErrIncomplete
	}
	return nil
}

// A sourceError is one of the file that is copied, and not of its copy.
type sourceError struct{ error }

// Unwrap returns what went wrong.
func (e *sourceError) Unwrap() error { return e.error }

// ofSource returns an error of the source, or nil.
func ofSource(err error) error {
	if err == nil {
		return nil
	}
	return &sourceError{err}
}

// fail tells that a file is not copied.
func (c *copier) fail(j job, err error) {
	if errors.As(err, new(*sourceError)) {
		c.tell(j.from.label(j.name), err)
	} else {
		c.tell(c.to.label(j.to), err)
	}
}

// tell tells what is wrong with a file. Errors that others will have too end all.
func (c *copier) tell(name string, err error) {
	if c.ctx.Err() != nil {
		return
	}
	var ended *EndedError
	line := fmt.Errorf("%s: %s", wire.Printable(name, maxLine), wire.Printable(files.Reason(err), maxLine))
	if errors.As(err, &ended) {
		c.stop(ended)
		return
	}
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
		c.stop(line)
		return
	}
	c.failed.Store(true)
	c.Failed(line.Error())
}

// maxLine bounds a path and an error in a line, in bytes: a server may have chosen either.
const maxLine = 1024

// finish counts a file, which was copied unless there is an error.
func (c *copier) finish(j job, err error) {
	if err != nil {
		c.fail(j, err)
		return
	}
	c.progress.Files.Add(1)
}

// add copies a file, or has a directory copied when run runs. It blocks while there is no place for the file.
func (c *copier) add(j job) {
	if c.ctx.Err() != nil {
		return
	}
	mode := j.info.Mode()
	if !mode.IsDir() {
		c.progress.TotalFiles.Add(1)
	}
	switch {
	case mode.IsDir() && !c.Recursive:
		c.fail(j, ofSource(errors.New("it is a directory: -r copies it")))
	case mode.IsDir():
		made, err := mkdirIn(c.to, j.to)
		if err == nil && made && mode.Perm()&0o755 != 0o755 { // the accounts that cannot read it cannot read the copy
			err = c.narrow(j.to, mode|0o700)
		}
		if err != nil {
			c.fail(j, err)
			return
		}
		c.mu.Lock()
		c.boundLocked(len(c.dirs))
		c.dirs = append(c.dirs, j)
		if c.Preserve {
			c.boundLocked(len(c.made))
			c.made = append(c.made, j)
		}
		c.mu.Unlock()
		c.changed.Signal()
	case mode&fs.ModeSymlink != 0:
		c.mu.Lock()
		c.boundLocked(len(c.links))
		c.links = append(c.links, j)
		c.mu.Unlock()
	case !mode.IsRegular():
		c.fail(j, ofSource(errors.New("not a regular file")))
	default:
		c.progress.TotalBytes.Add(j.info.Size())
		places, do := c.small, c.copySmall
		if j.info.Size() > files.MaxPut {
			places, do = c.large, c.copyLarge
		}
		select {
		case places <- struct{}{}:
		case <-c.ctx.Done():
			return
		}
		c.work.Go(func() {
			err := do(j)
			<-places
			c.finish(j, err)
		})
	}
}

// narrow takes the permissions from a new file of the target that a mode does not have.
func (c *copier) narrow(name string, mode fs.FileMode) error {
	info, err := c.to.lstat(name)
	if err == nil && info.Mode().Perm()&^mode != 0 {
		err = c.to.chmod(name, info.Mode().Perm()&mode)
	}
	return err
}

// maxWaiting bounds the directories and links that wait, so that a server that lists them without end takes no memory.
const maxWaiting = 1 << 20

// boundLocked ends all if too many wait.
func (c *copier) boundLocked(waiting int) {
	if waiting >= maxWaiting {
		c.stop(fmt.Errorf("more than %d directories or links wait to be copied: copy fewer at once", maxWaiting))
	}
}

// list lists directories until none is left.
func (c *copier) list() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.dirs) == 0 && c.listing > 0 && c.ctx.Err() == nil {
			c.changed.Wait()
		}
		if len(c.dirs) == 0 || c.ctx.Err() != nil {
			c.progress.Listed.Store(true)
			c.changed.Broadcast()
			return
		}
		dir := c.dirs[len(c.dirs)-1] // depth first: fewer wait
		c.dirs = c.dirs[:len(c.dirs)-1]
		c.listing++
		c.mu.Unlock()
		c.copyDir(dir)
		c.mu.Lock()
		c.listing--
	}
}

// copyDir copies what is in a directory.
func (c *copier) copyDir(dir job) {
	err := dir.from.readDir(dir.name, func(infos []fs.FileInfo) error {
		for _, info := range infos {
			name := info.Name()
			err := checkName(name)
			if err == nil && len(dir.to)+len(name) > maxPath {
				err = errors.New("its path is too long")
			}
			if err != nil {
				c.tell(dir.from.label(dir.name)+"/"+name, err)
				continue
			}
			c.add(job{from: dir.from, name: path.Join(dir.name, name), to: path.Join(dir.to, name), info: info})
		}
		return context.Cause(c.ctx)
	})
	if err != nil {
		c.fail(dir, ofSource(err))
	}
}

// attributes returns what the copy of a file gets.
func (c *copier) attributes(info fs.FileInfo) files.Attributes {
	a := files.Attributes{Mode: info.Mode().Perm()}
	if c.Preserve {
		a.Exact, a.ModTime = true, info.ModTime()
	}
	return a
}

// copySmall copies a file in one request.
func (c *copier) copySmall(j job) error {
	content, err := j.from.get(j.name)
	if err != nil {
		return ofSource(err)
	}
	if len(content) > files.MaxPut { // it has grown
		select {
		case c.large <- struct{}{}:
			defer func() { <-c.large }()
			return c.copyLarge(j)
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
	if err := c.to.put(j.to, c.attributes(j.info), content); err != nil {
		return err
	}
	c.progress.Bytes.Add(j.info.Size())
	return nil
}

// link makes a link with the target that another one has, in place of a link or file that is there.
func (c *copier) link(j job) error {
	target, err := j.from.readLink(j.name)
	if err != nil {
		return ofSource(err)
	}
	err = c.to.symlink(target, j.to)
	if info, missing := c.to.lstat(j.to); err != nil && missing == nil && !info.IsDir() {
		part := files.PartOf(j.to)
		c.to.remove(part)
		if err = c.to.symlink(target, part); err == nil {
			if err = c.to.rename(part, j.to); err != nil {
				c.to.remove(part)
			}
		}
	}
	return err
}
