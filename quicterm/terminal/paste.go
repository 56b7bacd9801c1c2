package terminal

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxPath bounds a pasted path in bytes: PATH_MAX of Linux.
	maxPath = 4096

	// maxHeld bounds the bytes that are typed while a paste is not there yet. Further ones are dropped.
	maxHeld = 64 << 10
)

// paste copies something to the server, and then puts its path in front of what was typed meanwhile. It waits until
// then, or for Ctrl-C.
func (k *menuKeys) paste(copies func(ctx context.Context, say func(string)) (path string, err error)) {
	ctx, cancel := context.WithCancel(k.life)
	defer cancel()
	news := &news{display: k.display}
	late := time.AfterFunc(pasteAfter, news.show)
	defer news.end()
	defer late.Stop()
	type copied struct {
		path string
		err  error
	}
	done := make(chan copied, 1)
	go func() {
		path, err := copies(ctx, news.set)
		done <- copied{path, err}
	}()
	for {
		select {
		case c := <-done:
			path, err := Quoted(c.path)
			if err = errors.Join(c.err, err); err != nil {
				k.display.print(wire.Printable(strings.ReplaceAll(err.Error(), "\n", "; "), maxPath))
				return
			}
			if k.display.takesPastes() {
				path = "\x1b[200~" + path + "\x1b[201~"
			}
			k.rest = append([]byte(path), k.rest...)
			return
		case typed := <-k.keys:
			const ctrlC = 3
			if i := bytes.IndexByte(typed, ctrlC); i >= 0 {
				k.display.print(pasteLeftText)
				k.rest = typed[i+1:]
				return
			}
			if len(k.rest)+len(typed) <= maxHeld {
				k.rest = append(k.rest, typed...)
			}
		case <-k.life.Done():
			return
		}
	}
}

// Quoted returns a path as shells read it. A path with control characters could do more than that.
func Quoted(path string) (string, error) {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,@%:="
	switch {
	case path != wire.Printable(path, maxPath):
		return "", errors.New("its path there is too long, or has control characters")
	case strings.Trim(path, plain) == "":
		return path, nil
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'", nil
}

// takesPastes reports whether the program asks for pastes to be marked.
func (d *display) takesPastes() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen.now().BracketedPaste()
}

// news tells how far something is: first on a line, then in the title.
type news struct {
	display *display

	mu    sync.Mutex
	text  string
	shown bool
	ended bool
}

func (n *news) set(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = text
	if n.shown && !n.ended {
		n.display.setTitle(pastingText(text), noticeTime)
	}
}

func (n *news) show() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ended {
		n.shown = true
		n.display.print(pastingText(n.text))
	}
}

func (n *news) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
}
