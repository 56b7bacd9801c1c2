//go:build js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall/js"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxUnshown bounds the output that the page has and its terminal has not taken, in bytes: some frames of a display.
	maxUnshown = 256 << 10

	// maxTyped bounds the strings that were typed and not read yet. The client reads without waiting for the server.
	maxTyped = 4096

	// scrollback is how many lines of a session's history its terminal gets.
	scrollback = 1000
)

// A tab is a terminal of the page, with one session. Its output blocks while the terminal has much to show.
type tab struct {
	page  *page
	id    int
	keys  typed
	sizes chan wire.Size // has the latest size
	takes chan struct{}

	mu      sync.Mutex
	unshown int
	left    bool                    // nothing is shown any more
	stop    context.CancelCauseFunc // stops the upload, or nil
	room    sync.Cond
}

func newTab(p *page, id int) *tab {
	t := &tab{page: p, id: id, keys: typed{keys: make(chan string, maxTyped)}, sizes: make(chan wire.Size, 1), takes: make(chan struct{}, 1)}
	t.room.L = &t.mu
	return t
}

// receive takes a message of the page. It does not block.
func (t *tab) receive(m js.Value) {
	if v := m.Get("keys"); v.Type() == js.TypeString {
		offer(t.keys.keys, v.String())
	}
	if v := m.Get("size"); v.Type() == js.TypeObject {
		select {
		case <-t.sizes: // it is out of date
		default:
		}
		offer(t.sizes, sizeOf(v))
	}
	if m.Get("take").Truthy() {
		offer(t.takes, struct{}{})
	}
	if v := m.Get("shown"); v.Type() == js.TypeNumber {
		t.mu.Lock()
		t.unshown -= v.Int()
		t.mu.Unlock()
		t.room.Signal()
	}
	if v := m.Get("copy"); v.Type() == js.TypeObject {
		offer(t.page.requests, func(h *host) { t.copy(h, v.Get("session").String(), v.Get("files")) })
	}
	if v := m.Get("paste"); v.Type() == js.TypeObject {
		offer(t.page.requests, func(h *host) { t.paste(h, v) })
	}
	if m.Get("stop").Truthy() {
		t.stopUpload()
	}
	if m.Get("leave").Truthy() {
		t.leave()
	}
}

// leave ends the tab, whose session continues.
func (t *tab) leave() {
	t.page.close(t)
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
	t.room.Signal()
	t.stopUpload()
	close(t.keys.keys)
}

func (t *tab) stopUpload() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop != nil {
		t.stop(errStopped)
	}
}

// run shows a session, or a new one, until it ends or is left, and tells the page.
func (t *tab) run(h *host, session string, size wire.Size, follows bool) {
	status, err := t.show(h, session, size, follows)
	ended := map[string]any{"text": h.ending(status, err)}
	if err == nil {
		ended["status"] = status
	}
	t.post("ended", ended)
}

func (t *tab) show(h *host, name string, size wire.Size, follows bool) (status int, err error) {
	pane := &terminal.Pane{In: &t.keys, Out: t, Sizes: t.sizes, Take: t.takes}
	if follows {
		pane.Follow = t.sized
	}
	terminal := terminal.New(terminal.Config{
		Pane:   pane,
		Escape: "none", Predict: predict.Adaptive, Host: h.name,
		Status: func(client.Status) string { return "" },
	})
	streams := terminal.Streams()
	changed := streams.Changed
	streams.Changed = func(l client.LinkState) {
		changed(l)
		t.post("link", map[string]any{"state": l.State.String(), "since": float64(l.Since.UnixMilli())})
	}
	streams.Ports = func(ports []uint16) {
		open := make([]any, len(ports))
		for i, port := range ports {
			open[i] = int(port)
		}
		t.post("ports", open)
	}
	streams.Waits = func() { t.post("waits", true) }
	req := &wire.Attach{
		Notify: h.notify, PTY: true, Size: size, Session: name, Replay: wire.Replay{Kind: wire.ReplayScreen, Lines: scrollback},
		Env: [][2]string{{"TERM", "xterm-256color"}, {"COLORTERM", "truecolor"}},
	}
	if name != "" {
		req.Mode = wire.ModeAttach
		if follows || h.share != nil {
			req.Role, req.Size = wire.RoleShare, wire.Size{}
		}
	}
	if h.share != nil && !h.share.Types {
		req.Role = wire.RoleWatch
	}
	session, err := h.client.Attach(context.Background(), req, streams)
	if err != nil {
		return 0, err
	}
	t.post("attached", map[string]any{
		"id": session.ID().String(), "name": session.Name(), "created": session.Created(),
	})
	return terminal.RunPane(context.Background(), session, size)
}

// sized tells the page the size of the session.
func (t *tab) sized(s wire.Sizing, own bool) {
	t.post("sizing", map[string]any{"size": []any{int(s.Cols), int(s.Rows)}, "own": own, "client": s.Client})
}

// message returns a message that is about the session.
func (t *tab) message(name string, v any) map[string]any { return map[string]any{"tab": t.id, name: v} }

func (t *tab) post(name string, v any) { js.Global().Call("postMessage", t.message(name, v)) }

// errLeft is the error of output that nothing shows any more.
var errLeft = errors.New("the terminal is closed")

// Write shows output.
func (t *tab) Write(b []byte) (int, error) {
	t.mu.Lock()
	for t.unshown > maxUnshown && !t.left {
		t.room.Wait()
	}
	t.unshown += len(b)
	left := t.left
	t.mu.Unlock()
	if left {
		return 0, errLeft
	}
	array := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(array, b)
	js.Global().Call("postMessage", t.message("output", array), []any{array.Get("buffer")})
	return len(b), nil
}

// typed is what was typed, as a reader.
type typed struct {
	keys chan string
	rest string
}

func (t *typed) Read(b []byte) (int, error) {
	if t.rest == "" {
		var open bool
		if t.rest, open = <-t.keys; !open {
			return 0, io.EOF
		}
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// ending says in words how a session has ended for this client.
func (h *host) ending(status int, err error) string {
	switch {
	case err == nil && status == 0:
		return "the session has ended"
	case err == nil:
		return fmt.Sprintf("the session has ended with status %d", status)
	case errors.Is(err, client.ErrLeft):
		return "left; the session continues"
	}
	return h.reason(err)
}

// reason says in words why something has failed.
func (h *host) reason(err error) string {
	var refusal *wire.Error
	switch {
	case errors.As(err, new(*client.DeniedError)):
		return h.denied
	case errors.As(err, &refusal):
		return refusal.Error()
	}
	return err.Error()
}
