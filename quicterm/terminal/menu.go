package terminal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"golang.org/x/term"
)

// menuPrompt is in front of a line that the user types in a menu.
const menuPrompt = "qt: "

// maxMenuKeys bounds the reads of the keyboard that wait while a menu is busy. Further ones are dropped.
const maxMenuKeys = 64

// A menu asks the user for lines between the program's output, and shows the answers. Keys go to it until the user
// leaves it with an empty line, Ctrl-C or Ctrl-D; left then gets the keys that were typed since. The program's output
// continues.
type menu struct {
	display *display
	answer  func(ctx context.Context, line string) string
	left    func(end func() (typed []byte))
	life    context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex
	keys chan []byte // while it is open
}

func newMenu(
	d *display, answer func(context.Context, string) string, left func(end func() (typed []byte)),
) *menu {
	m := &menu{display: d, answer: answer, left: left}
	m.life, m.stop = context.WithCancel(context.Background())
	return m
}

// begin opens the menu, unless it is open.
func (m *menu) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil && m.life.Err() == nil {
		m.keys = make(chan []byte, maxMenuKeys)
		m.wg.Go(func() { m.run(&menuKeys{life: m.life, keys: m.keys, display: m.display}) })
	}
}

// takes takes typed bytes while the menu is open.
func (m *menu) takes(typed []byte) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		return false
	}
	select {
	case m.keys <- append([]byte(nil), typed...):
	default:
	}
	return true
}

func (m *menu) run(keys *menuKeys) {
	lines := term.NewTerminal(keys, menuPrompt)
	for line, err := "", error(nil); ; {
		answer := make(chan string, 1)
		go func() { answer <- m.answer(m.life, line) }() // a dead network may keep it: whoever leaves does not wait for it
		select {
		case text := <-answer:
			m.display.print(text)
		case <-m.life.Done():
			return
		}
		if line, err = lines.ReadLine(); err != nil || line == "" {
			break
		}
	}
	if m.life.Err() == nil {
		fmt.Fprint(keys, "\r\n")
	}
	m.left(func() []byte { return m.end(keys.rest) })
}

// end closes the menu, and returns the keys that it has not used: those that are left of a read, and of later ones.
func (m *menu) end(typed []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.keys) > 0 {
		typed = append(typed, <-m.keys...)
	}
	m.keys = nil
	return typed
}

// close ends the menu, and waits for that, but not for an answer.
func (m *menu) close() {
	if m != nil {
		m.mu.Lock()
		m.stop()
		m.mu.Unlock()
		m.wg.Wait()
	}
}

// menuKeys is the terminal of a menu.
type menuKeys struct {
	life    context.Context
	keys    <-chan []byte
	rest    []byte
	display *display
}

func (k *menuKeys) Read(b []byte) (int, error) {
	if len(k.rest) == 0 {
		select {
		case k.rest = <-k.keys:
		case <-k.life.Done():
			return 0, io.EOF
		}
	}
	end := len(k.rest)
	if i := bytes.IndexAny(k.rest, "\r\n\x03\x04"); i >= 0 {
		end = i + 1 // the next ones may be for the program
	}
	n := copy(b, k.rest[:end])
	k.rest = k.rest[n:]
	return n, nil
}

func (k *menuKeys) Write(b []byte) (int, error) {
	k.display.echo(b)
	return len(b), nil
}
