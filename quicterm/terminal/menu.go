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

// A menu takes the keyboard from the program while something of this client uses it. Then left gets the keys that are for
// the program. The program's output continues.
type menu struct {
	display *display
	left    func(end func() (typed []byte))
	life    context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex
	keys chan []byte // while it is open
}

func newMenu(d *display, left func(end func() (typed []byte))) *menu {
	m := &menu{display: d, left: left}
	m.life, m.stop = context.WithCancel(context.Background())
	return m
}

// begin opens the menu for use, unless it is open.
func (m *menu) begin(use func(*menuKeys)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil && m.life.Err() == nil {
		m.keys = make(chan []byte, maxMenuKeys)
		keys := &menuKeys{life: m.life, keys: m.keys, display: m.display}
		m.wg.Go(func() {
			use(keys)
			m.left(func() []byte { return m.end(keys.rest) })
		})
	}
}

// takes takes typed bytes while the menu is open.
func (m *menu) takes(typed []byte) bool {
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

// stays returns the answers of a menu that stays until the user leaves it.
func stays(answers func(context.Context, string) string) func(context.Context, string) (string, bool) {
	return func(ctx context.Context, line string) (string, bool) { return answers(ctx, line), true }
}

// ask asks the user for lines between the program's output, and shows the answers, until the last of these, an empty
// line, Ctrl-C or Ctrl-D.
func (k *menuKeys) ask(answers func(ctx context.Context, line string) (text string, more bool)) {
	lines := term.NewTerminal(k, menuPrompt)
	type answered struct {
		text string
		more bool
	}
	for line, err := "", error(nil); ; {
		answer := make(chan answered, 1)
		go func() { // a dead network may keep it: whoever leaves does not wait for it
			text, more := answers(k.life, line)
			answer <- answered{text, more}
		}()
		select {
		case a := <-answer:
			if k.display.print(a.text); !a.more {
				return
			}
		case <-k.life.Done():
			return
		}
		if line, err = lines.ReadLine(); err != nil || line == "" {
			break
		}
	}
	if k.life.Err() == nil {
		fmt.Fprint(k, "\r\n")
	}
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
	m.mu.Lock()
	m.stop()
	m.mu.Unlock()
	m.wg.Wait()
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
