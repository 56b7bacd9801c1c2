package systemd

import (
	"context"
	"os/exec"
)

// A Scopes is not there on this system.
type Scopes struct{}

// A Scope is what a process is put into.
type Scope struct {
	Unit, Slice, Description string
}

// FindScopes returns nil.
func FindScopes() *Scopes { return nil }

// Move does nothing.
func (*Scopes) Move(context.Context, int, Scope) error { return nil }

// InLogin returns false.
func InLogin() bool { return false }

// EndsAtLogout returns nothing: no process ends with a login.
func EndsAtLogout(context.Context) string { return "" }

// Outside returns nil.
func Outside() func(*exec.Cmd) error { return nil }
