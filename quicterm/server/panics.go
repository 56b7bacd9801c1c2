//go:build linux || darwin

package server

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// maxStack is how much of a goroutine's stack is logged: the top of it.
const maxStack = 8 << 10

// A panicError is the error of a function that has panicked.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %.500v", e.value) }

// contain calls a function that works for one connection, and returns its error. If it
// panics, contain logs the stack and returns the panic as an error: an error in our program
// ends one connection, not those of all. The function must unlock by defer what it locks.
// What QUIC calls in its own goroutines calls contain too.
func (s *Server) contain(log *slog.Logger, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value}
			stack := debug.Stack()
			s.panicLog.warn(time.Now(), log, "panic", "error", err, "stack", string(stack[:min(len(stack), maxStack)]))
		}
	}()
	return f()
}

// spawn runs f in a goroutine of the connection, which ends if f panics.
func (c *conn) spawn(wg *sync.WaitGroup, f func()) {
	log := c.log // serve sets another one
	wg.Go(func() {
		if c.server.contain(log, func() error { f(); return nil }) != nil {
			c.incoming.Close()
		}
	})
}
