package terminal

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
)

// A menu whose answer does not come keeps nobody who leaves.
func TestMenuWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisplay(io.Discard, Config{})
		k := newKeyboard(newSlowSession(100), d, nil, Config{})
		network := make(chan struct{})
		k.menu.begin(func(keys *menuKeys) { keys.ask(stays(func(context.Context, string) string { <-network; return "" })) })
		synctest.Wait()
		k.close() // or all goroutines would wait for ever
		close(network)
	})
}

// What is typed behind the line that leaves a menu goes to the program, also if it came with that line.
func TestTypedBehindMenu(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newSlowSession(100), newDisplay(io.Discard, Config{})
		k := newKeyboard(s, d, nil, Config{})
		lines := make(chan string)
		k.menu.begin(func(keys *menuKeys) { keys.ask(stays(func(context.Context, string) string { return <-lines })) })
		k.send([]byte("1\r"))
		k.send([]byte("\rls\r"))
		k.send([]byte("pwd\r"))
		lines <- "first"
		lines <- "second"
		synctest.Wait()
		k.send([]byte("id\r"))
		k.close()
		if got := s.input.String(); got != "ls\rpwd\rid\r" {
			t.Errorf("the program got %q", got)
		}
	})
}
