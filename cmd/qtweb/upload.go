//go:build js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall/js"
	"time"

	"github.com/quicterm/quicterm/quicterm/client/files"
	"github.com/quicterm/quicterm/quicterm/drive"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxUploads bounds the files of the page that are copied at once, each with at most 8 MiB in memory.
	maxUploads = 3

	// maxPasted bounds what is pasted in bytes: all of it is in memory.
	maxPasted = 20 << 20

	// maxFailed bounds the files of which the page is told why they are not copied.
	maxFailed = 3

	// maxName bounds the name of a file, and maxReason why it is not copied, in bytes.
	maxName   = 255
	maxReason = 1024

	// progressTime is the time between two messages of how far a copy is: a screen reader says each.
	progressTime = time.Second

	// removeTime is how long a copy that was stopped may take to remove what it has written.
	removeTime = 5 * time.Second
)

// errStopped is the error of a copy that the user has stopped.
var errStopped = errors.New("stopped")

// suffixes are those that a pasted file keeps.
var suffixes = regexp.MustCompile(`^\.[a-z0-9]{1,8}$`)

// A blob is a file of this device. The browser reads it as it is needed.
type blob struct {
	ctx  context.Context
	v    js.Value
	size int64
}

func blobOf(ctx context.Context, v js.Value) *blob {
	return &blob{ctx: ctx, v: v, size: int64(v.Get("size").Float())}
}

// ReadAt implements [io.ReaderAt].
func (b *blob) ReadAt(p []byte, offset int64) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	buffer, err := await(b.v.Call("slice", offset, min(offset+int64(len(p)), b.size)).Call("arrayBuffer"))
	if err != nil {
		return 0, errors.New("the browser cannot read it: it is a directory, or was changed")
	}
	n := js.CopyBytesToGo(p, js.Global().Get("Uint8Array").New(buffer))
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// An uploaded says what has become of files.
type uploaded struct {
	text   string // for the user
	path   string // of what was pasted
	failed bool
}

// upload copies files while the tab is open, and tells the page. A tab has one upload at a time.
func (t *tab) upload(
	h *host, total int64, copies func(ctx context.Context, f *files.Files, wrote func(int64)) (uploaded, error),
) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	t.mu.Lock()
	if t.stop != nil || t.left {
		t.mu.Unlock()
		return // the page asks for no second one
	}
	t.stop = stop
	t.mu.Unlock()
	var done atomic.Int64
	tick := time.NewTicker(progressTime)
	defer tick.Stop()
	go func() {
		for {
			select {
			case <-tick.C:
				t.post("copying", fmt.Sprintf("%d %% of %s", done.Load()*100/max(total, 1), terminal.Bytes(uint64(total))))
			case <-ctx.Done():
				return
			}
		}
	}()
	u, err := func() (u uploaded, err error) {
		f, err := files.Open(ctx, h.client)
		if err != nil {
			return u, err
		}
		defer f.Close()
		defer context.AfterFunc(ctx, func() {
			time.Sleep(removeTime)
			f.Close() // or a request would wait for a network
		})()
		return copies(ctx, f, func(n int64) { done.Add(n) })
	}()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		u = uploaded{text: "Not copied: " + wire.Printable(h.reason(err), maxReason), failed: true}
	}
	t.mu.Lock()
	t.stop = nil
	t.mu.Unlock()
	t.post("copied", map[string]any{"text": u.text, "path": u.path, "failed": u.failed})
}

// copy copies the files of an array to the directory of a session.
func (t *tab) copy(h *host, session string, list js.Value) {
	total := int64(0)
	for i := range list.Length() {
		total += int64(list.Index(i).Get("size").Float())
	}
	t.upload(h, total, func(ctx context.Context, f *files.Files, wrote func(int64)) (u uploaded, err error) {
		view, err := drive.Peek(ctx, h.client, session, 0)
		if err != nil {
			return u, err
		}
		if view.CWD == "" {
			return u, errors.New("the session does not tell its directory")
		}
		var mu sync.Mutex // guards what follows
		var names, failed []string
		var work sync.WaitGroup
		for i := range list.Length() {
			select {
			case t.page.uploads <- struct{}{}:
			case <-ctx.Done():
				continue
			}
			work.Go(func() {
				defer func() { <-t.page.uploads }()
				file := list.Index(i)
				given := file.Get("name").String()
				base := wire.Printable(given[strings.LastIndexAny(given, `/\`)+1:], maxName)
				b := blobOf(ctx, file)
				name, err := f.Add(view.CWD, base, b, b.size, wrote)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = append(failed, wire.Printable(given+": "+h.reason(err), maxReason))
				} else {
					names = append(names, name)
				}
			})
		}
		work.Wait()
		return summary(view.CWD, names, failed), nil
	})
}

// summary tells which files are in a directory now, and why others are not.
func summary(dir string, names, failed []string) (u uploaded) {
	switch len(names) {
	case 0:
		u.text = "Not copied"
	case 1:
		u.text = fmt.Sprintf("Copied %s to %s", names[0], dir)
	default:
		u.text = fmt.Sprintf("Copied %d files to %s", len(names), dir)
	}
	for i, line := range failed {
		u.failed = true
		if i == maxFailed {
			u.text += fmt.Sprintf("; and %d others are not copied", len(failed)-i)
			break
		}
		u.text += "; " + line
	}
	return u
}

// paste copies a picture or a file to where pasted ones are, and tells the page its path as a shell reads it.
func (t *tab) paste(h *host, v js.Value) {
	b := blobOf(context.Background(), v)
	t.upload(h, b.size, func(ctx context.Context, f *files.Files, wrote func(int64)) (u uploaded, err error) {
		if b.size > maxPasted {
			return u, fmt.Errorf("it has more than %s: drop it onto the page", terminal.Bytes(maxPasted))
		}
		b.ctx = ctx
		content := make([]byte, b.size)
		if _, err := b.ReadAt(content, 0); err != nil {
			return u, err
		}
		suffix := strings.ToLower(path.Ext(v.Get("name").String()))
		if !suffixes.MatchString(suffix) {
			suffix = ""
		}
		name, err := f.Paste(suffix, content, wrote)
		if err != nil {
			return u, err
		}
		f.RemoveOldPastes(name)
		u.path, err = terminal.Quoted(name)
		return u, err
	})
}
