// Package panics contains the panics of functions that work for one client: an error in our program
// ends one connection, not those of all.
package panics

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/floodlog"
)

const (
	// maxStack is how much of a goroutine's stack is logged: the top of it.
	maxStack = 8 << 10

	// burst is how many panics are logged at once, before it is one a second.
	burst = 4
)

// An Error is the error of a function that has panicked.
type Error struct{ value any }

func (e *Error) Error() string { return fmt.Sprintf("panic: %.500v", e.value) }

// A Container contains panics, and logs them.
type Container struct{ log *floodlog.Log }

// New returns a Container.
func New() *Container { return &Container{floodlog.New(burst)} }

// Contain calls a function and returns its error. If it panics, Contain logs the stack and returns
// the panic as an *Error. The function must unlock by defer what it locks.
func (c *Container) Contain(log *slog.Logger, f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value}
			stack := debug.Stack()
			c.log.Limited(time.Now(), log, "panic", "error", err, "stack", string(stack[:min(len(stack), maxStack)]))
		}
	}()
	return f()
}
