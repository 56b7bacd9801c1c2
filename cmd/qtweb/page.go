//go:build js

package main

import (
	"io"
	"sync"
	"syscall/js"

	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxUnshown bounds the output that the page has and its terminal has not taken, in bytes: some frames of a display.
	maxUnshown = 256 << 10

	// maxTyped bounds the strings that were typed and not read yet. The client reads without waiting for the server.
	maxTyped = 4096
)

// A page is what runs this program in a worker. Its output blocks while the terminal has much to show.
type page struct {
	starts chan start
	keys   *typed
	sizes  chan wire.Size // has the latest size
	events chan netmon.Event

	mu      sync.Mutex
	unshown int
	room    sync.Cond
}

func newPage() *page {
	p := &page{
		starts: make(chan start, 1), keys: &typed{keys: make(chan string, maxTyped)},
		sizes: make(chan wire.Size, 1), events: make(chan netmon.Event, 1),
	}
	p.room.L = &p.mu
	js.Global().Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		p.receive(args[0].Get("data"))
		return nil
	}))
	return p
}

// receive takes a message of the page. It does not block.
func (p *page) receive(m js.Value) {
	if v := m.Get("start"); v.Type() == js.TypeObject {
		s := start{size: sizeOf(v.Get("size"))}
		s.read(v)
		offer(p.starts, s)
	}
	if v := m.Get("keys"); v.Type() == js.TypeString {
		offer(p.keys.keys, v.String())
	}
	if v := m.Get("size"); v.Type() == js.TypeObject {
		select {
		case <-p.sizes: // it is out of date
		default:
		}
		offer(p.sizes, sizeOf(v))
	}
	if v := m.Get("shown"); v.Type() == js.TypeNumber {
		p.mu.Lock()
		p.unshown -= v.Int()
		p.mu.Unlock()
		p.room.Signal()
	}
	if v := m.Get("network"); v.Type() == js.TypeString {
		event := netmon.Changed
		if v.String() == netmon.Woke.String() {
			event = netmon.Woke
		}
		offer(p.events, event)
	}
}

// sizeOf returns the size in an array of columns and rows.
func sizeOf(v js.Value) wire.Size {
	return wire.Size{Cols: uint16(v.Index(0).Int()), Rows: uint16(v.Index(1).Int())}
}

// offer sends unless the channel is full.
func offer[T any](c chan<- T, v T) {
	select {
	case c <- v:
	default:
	}
}

func (p *page) post(name string, v any) { js.Global().Call("postMessage", value(name, v)) }

// Write shows output.
func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	for p.unshown > maxUnshown {
		p.room.Wait()
	}
	p.unshown += len(b)
	p.mu.Unlock()
	array := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(array, b)
	moved := js.Global().Get("Array").New(array.Get("buffer"))
	js.Global().Call("postMessage", value("output", array), moved)
	return len(b), nil
}

// typed is what was typed, as a reader.
type typed struct {
	keys chan string
	rest string
}

func (t *typed) Read(b []byte) (int, error) {
	if t.rest == "" {
		t.rest = <-t.keys
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

var _ io.Reader = (*typed)(nil)
