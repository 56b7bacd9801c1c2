package terminal

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// newPasting returns a keyboard whose pastes are what the channel has.
func newPasting(t *testing.T, room int) (k *typist, paths chan any) {
	paths = make(chan any)
	k = newTyping(t, room, 1000)
	k.cfg.Paste = func(ctx context.Context, say func(string)) (string, error) {
		say("copying")
		for {
			select {
			case p := <-paths:
				switch p := p.(type) {
				case func():
					p()
				case error:
					return "", p
				case string:
					return p, nil
				}
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	}
	return k, paths
}

func (k *typist) wantInput(why, want string) {
	k.t.Helper()
	synctest.Wait()
	if got := k.session.input.String(); got != want {
		k.t.Errorf("%s: the program got %q, want %q", why, got, want)
	}
	k.session.input.Reset()
}

// A pasted path comes before what was typed while it was not there, and is marked if the program wants that.
func TestPaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, paths := newPasting(t, 1000)
		defer k.end()
		k.typed("~! what")
		k.typed(" is it\r")
		k.wantInput("before", "")
		paths <- "/home/a/p.png"
		k.wantInput("then", "/home/a/p.png what is it\r")
		io.WriteString(k.display, "\x1b[?2004h")
		k.typed("~!")
		paths <- "/home/a b/it's.png"
		k.wantInput("marked", "\x1b[200~"+`'/home/a b/it'\''s.png'`+"\x1b[201~")
		k.typed("~!x\r")
		paths <- "/home/\x1b[201~rm\r"
		k.wantInput("control characters", "x\r")
		k.shown.Reset()
		k.typed("~!y\r")
		paths <- errors.New("no\x1b[picture\nat all")
		k.wantShown("an error", "\r\n[qt: no?[picture; at all]\r\n")
		k.wantInput("after an error", "y\r")
	})
}

// A paste that takes long says how far it is, and whoever leaves it does not wait for it.
func TestLeavePaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, paths := newPasting(t, 1000)
		defer k.end()
		k.typed("~!")
		time.Sleep(pasteAfter - 1)
		k.wantShown("a moment", "")
		time.Sleep(time.Nanosecond)
		k.wantShown("long", "\r\n[qt: copying: Ctrl-C leaves it]\r\n")
		k.typed("typed\x03ls\r")
		k.wantShown("left", "\r\n[qt: nothing is pasted]\r\n")
		k.wantInput("left", "ls\r")
		k.typed("~!")
		k.typed(string(make([]byte, maxHeld-1)))
		k.typed("dropped")
		k.typed("!")
		k.session.size = 2 * maxHeld
		paths <- "p"
		synctest.Wait()
		if got := k.session.input.Bytes(); len(got) != 1+maxHeld || got[0] != 'p' || got[maxHeld] != '!' {
			t.Errorf("the program got %d bytes", len(got))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		k, _ := newPasting(t, 1000)
		k.typed("~!typed")
		k.end() // or all goroutines would wait for ever
	})
}
