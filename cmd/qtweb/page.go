//go:build js

package main

import (
	"sync"
	"syscall/js"

	"github.com/quicterm/quicterm/migrate/netmon"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maxRequests bounds the requests of a page that were not begun yet: it waits for the host before it sends one.
const maxRequests = 64

// A page is what runs this program in a worker.
type page struct {
	starts   chan start
	requests chan func(*host)
	network  network
	uploads  chan struct{} // places

	mu   sync.Mutex
	tabs map[int]*tab
}

func newPage() *page {
	p := &page{
		starts: make(chan start, 1), requests: make(chan func(*host), maxRequests), tabs: make(map[int]*tab),
		uploads: make(chan struct{}, maxUploads),
	}
	js.Global().Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		p.receive(args[0].Get("data"))
		return nil
	}))
	return p
}

// receive takes a message of the page. It does not block.
func (p *page) receive(m js.Value) {
	if v := m.Get("start"); v.Type() == js.TypeObject {
		var s start
		s.read(v)
		offer(p.starts, s)
	}
	if m.Get("list").Truthy() {
		offer(p.requests, p.list)
	}
	if m.Get("forget").Truthy() {
		offer(p.requests, p.forget)
	}
	if v := m.Get("network"); v.Type() == js.TypeString {
		event := netmon.Changed
		if v.String() == netmon.Woke.String() {
			event = netmon.Woke
		}
		p.network.tell(event)
	}
	id := m.Get("tab")
	if id.Type() != js.TypeNumber {
		return
	}
	if v := m.Get("attach"); v.Type() == js.TypeObject {
		t := p.open(id.Int())
		session, size, follows := v.Get("session").String(), sizeOf(v.Get("size")), v.Get("follows").Truthy()
		offer(p.requests, func(h *host) { t.run(h, session, size, follows) })
	} else if t := p.tab(id.Int()); t != nil {
		t.receive(m)
	}
}

func (p *page) open(id int) *tab {
	t := newTab(p, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tabs[id] = t
	return t
}

func (p *page) tab(id int) *tab {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tabs[id]
}

func (p *page) close(t *tab) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tabs, t.id)
}

// post sends a message that is about no session.
func (p *page) post(name string, v any) {
	js.Global().Call("postMessage", map[string]any{name: v})
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
