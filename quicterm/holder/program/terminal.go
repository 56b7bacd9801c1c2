//go:build linux || darwin

package program

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier/nonblock"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// setTerminal gives a new terminal the modes that differ from the kernel's:
// erasing a character that takes several bytes.
func setTerminal(tty *os.File) error {
	return control(tty, func(fd int) error {
		modes, err := unix.IoctlGetTermios(fd, getTermios)
		if err != nil {
			return err
		}
		modes.Iflag |= unix.IUTF8
		return unix.IoctlSetTermios(fd, setTermios, modes)
	})
}

// flagsOf returns what a hint tells of the modes of a terminal.
func flagsOf(t *unix.Termios) (flags wire.TerminalFlags) {
	set := func(flag wire.TerminalFlags, on bool) {
		if on {
			flags |= flag
		}
	}
	set(wire.Canonical, t.Lflag&unix.ICANON != 0)
	set(wire.Echo, t.Lflag&unix.ECHO != 0)
	set(wire.EchoErase, t.Lflag&unix.ECHOE != 0)
	set(wire.EchoControl, t.Lflag&unix.ECHOCTL != 0)
	set(wire.Signals, t.Lflag&unix.ISIG != 0)
	set(wire.Extended, t.Lflag&unix.IEXTEN != 0)
	set(wire.UsualKeys, t.Cc[unix.VERASE] == 0x7f && t.Cc[unix.VKILL] == 'U'&0x1f &&
		t.Cc[unix.VWERASE] == 'W'&0x1f && t.Iflag&unix.IUTF8 != 0)
	return flags
}

// onTerminal calls f with the terminal's descriptor while the program runs.
func (p *Process) onTerminal(f func(fd uintptr)) {
	p.mu.Lock()
	over := p.reaped || p.terminal == nil
	p.mu.Unlock()
	if !over {
		p.terminal.raw.Control(f)
	}
}

// group returns the process group in the foreground, or 0.
func (p *Process) group() (group int) {
	p.onTerminal(func(fd uintptr) {
		if g, err := nonblock.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil {
			group = g
		}
	})
	return group
}

// execTime is for how long a process group that has come to the foreground may still become
// another program: a shell puts its child there before that executes the program. While the child still
// has the shell's name, it may take longer.
const execTime = time.Second

// A foreground is the process group in the foreground of a terminal.
type foreground struct {
	group   int
	since   time.Time
	context uint16
	before  uint16 // context of the group before
}

// update records which group is in the foreground. It reads the name of its first process when that may have changed.
func (f *foreground) update(now time.Time, group int) {
	if group != f.group {
		*f = foreground{group: group, since: now, before: f.context}
	} else if now.Sub(f.since) > execTime && f.context != f.before {
		return
	}
	if name, err := processName(group); err == nil { // it may have ended before the others
		f.context = wire.ContextOf(name)
	}
}

// shells are the contexts of shells: a session's command may be one that a person types in.
var shells = func() map[uint16]bool {
	known := make(map[uint16]bool)
	for _, name := range []string{"sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"} {
		known[wire.ContextOf([]byte(name))] = true
	}
	return known
}()

// Modes returns what a [wire.Hint] tells of the terminal.
func (p *Process) Modes(now time.Time) (flags wire.TerminalFlags, context uint16, ok bool) {
	if p.terminal == nil {
		return 0, 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.terminal.raw.Control(func(fd uintptr) { // not called when it is closed
		termios, err := nonblock.IoctlGetTermios(fd, getTermios)
		if ok = err == nil; !ok {
			return
		}
		flags = flagsOf(termios)
		group, err := nonblock.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err != nil || group <= 0 {
			return
		}
		p.foreground.update(now, group)
		context = p.foreground.context
		edits := shells[context] && flags&wire.Canonical == 0 // not a script that reads a line
		if !p.reaped && group == p.pid && (p.shell || edits) {
			flags |= wire.Shell
		}
	})
	return flags, context, ok
}
