package terminal

import (
	"errors"
	"io"
	"sync"
)

// maxQueue bounds the input in bytes that waits for room in the session, which keeps 8 MiB
// itself: together more than any paste.
const maxQueue = 64 << 20

// A keyboard passes what is typed to the session and runs the escapes in it.
//
// Reading a terminal never waits for the session, so that escapes work at once when the program does not read its
// input. Input goes straight to the session while that has room, else to a queue. When the queue is full too, input
// is dropped and counted: one message says so at the start, another how much it was when there is room again.
type keyboard struct {
	session Session
	display *display
	view    *view // or nil, if another way shows the session
	cfg     Config
	escapes *escapeFilter
	suspend func() // or nil
	menu    *menu

	mu       sync.Mutex
	queue    []input
	queued   int  // bytes in queue, with the input being written
	max      int  // of queued
	dropped  int  // bytes since the queue was full, 0 while it is not
	draining bool // the goroutine that empties the queue runs
	closed   bool
	wg       sync.WaitGroup // of that goroutine
}

// input is typed bytes or, if that is not nil, something to do after the input before.
type input struct {
	typed []byte
	do    func() error
}

func newKeyboard(s Session, d *display, v *view, cfg Config) *keyboard {
	k := &keyboard{session: s, display: d, view: v, cfg: cfg, escapes: newEscapeFilter(cfg.Escape), max: maxQueue}
	k.menu = newMenu(d, k.leaveMenu)
	return k
}

// read reads in until it fails. If in is a file or a pipe, read waits for the session and drops nothing, and the end
// of in ends the program's input. If a terminal ends, it is gone, and read leaves the session.
func (k *keyboard) read(in io.Reader, isFile bool) {
	buf := make([]byte, 16<<10)
	send := k.send
	if isFile {
		send = func(b []byte) { k.session.Write(b) }
	}
	for {
		n, err := in.Read(buf)
		if n > 0 {
			k.escapes.filter(buf[:n], send, k.escape)
		}
		if errors.Is(err, io.EOF) && isFile {
			k.escapes.end(send)
			k.do(k.session.CloseWrite)
			return
		}
		if err != nil {
			k.session.Leave()
			return
		}
	}
}

// escape runs an escape, if it is known. Escapes are symbols: a word that begins with a tilde, as
// ~david/, is not one.
func (k *keyboard) escape(c byte) bool {
	switch c {
	case '.':
		k.session.Leave()
	case 'Z' & 0x1f:
		if k.suspend == nil {
			return false
		}
		k.suspend()
	case '#':
		k.display.print(k.cfg.Status(k.session.Status()) + k.display.predictions())
	case '*':
		return k.display.switchPredictions()
	case '>':
		k.display.skip()
		k.do(k.session.Skip)
	case '=':
		if k.view == nil {
			return false
		}
		size := k.view.takes()
		k.do(func() error { return k.session.TakeSize(size) })
	case '+':
		if k.cfg.Forwards == nil {
			return false
		}
		k.menu.begin(func(keys *menuKeys) { keys.ask(stays(k.cfg.Forwards)) })
	case '<':
		if k.cfg.Offers == nil {
			return false
		}
		k.menu.begin(func(keys *menuKeys) { keys.ask(k.cfg.Offers) })
	case '!':
		if k.cfg.Paste == nil {
			return false
		}
		k.menu.begin(func(keys *menuKeys) { keys.paste(k.cfg.Paste) })
	case '?':
		k.display.print(helpText(k.cfg, k.escapes.char))
	default:
		return false
	}
	return true
}

// send passes typed bytes to the session. It does not block, and retains nothing of b.
func (k *keyboard) send(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.menu.takes(b) {
		k.sendLocked(b)
	}
}

// leaveMenu passes what was typed after the menu to the session, before anything that is typed from now on.
func (k *keyboard) leaveMenu(end func() (typed []byte)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if typed := end(); len(typed) > 0 {
		k.sendLocked(typed)
	}
}

func (k *keyboard) sendLocked(b []byte) {
	if k.closed {
		return
	}
	if k.view != nil {
		b = k.view.typed(b)
	}
	p := k.display.typing()
	n, frame, err := k.tryWriteLocked(b)
	if p != nil {
		if err == nil {
			p.typedLocked(b, n, frame)
		}
		p.mu.Unlock()
	}
	k.session.Flush()
	if err != nil { // the session is over
		return
	}
	b = b[n:]
	if len(b) == 0 {
		return
	}
	if k.dropped > 0 || k.queued+len(b) > k.max {
		if k.dropped == 0 {
			k.display.print(inputFullText(k.queued) + "\a")
		}
		k.dropped += len(b)
		return
	}
	k.enqueueLocked(input{typed: append([]byte(nil), b...)})
}

// tryWriteLocked puts as much of b into the log of the input as there is room for: nothing while a queue waits.
func (k *keyboard) tryWriteLocked(b []byte) (n int, frame uint64, err error) {
	if k.draining {
		return 0, 0, nil
	}
	return k.session.TryWrite(b)
}

// do calls f, which may block, after the input before has gone to the session.
func (k *keyboard) do(f func() error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.enqueueLocked(input{do: f})
	}
}

func (k *keyboard) enqueueLocked(i input) {
	k.queue = append(k.queue, i)
	k.queued += len(i.typed)
	if !k.draining {
		k.draining = true
		k.wg.Go(k.drain)
	}
}

// drain empties the queue into the session.
func (k *keyboard) drain() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) > 0 && !k.closed {
		next := k.queue[0]
		k.queue[0] = input{}
		k.queue = k.queue[1:]
		k.mu.Unlock()
		var err error
		if next.do != nil {
			err = next.do()
		} else {
			_, err = k.session.Write(next.typed)
		}
		k.mu.Lock()
		if err != nil { // the session is over
			break
		}
		k.queued -= len(next.typed)
		if k.dropped > 0 && k.queued <= k.max/2 {
			k.display.print(inputDroppedText(k.dropped))
			k.dropped = 0
		}
	}
	k.queue = nil
	k.draining = false
}

// close drops the queued input, after the session's end, and waits for drain to return.
func (k *keyboard) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.menu.close()
	k.wg.Wait()
}
