//go:build linux

package record

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/bench/trace"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A holder looks at its terminal that often while there is output, and once this long after it; and
// this long after input, which then counts as had by the program.
const (
	hintEvery      = 5 * time.Millisecond
	hintAfterInput = 30 * time.Millisecond
)

// look records a hint, as a holder tells it: always, or only if the terminal has changed.
func (r *recorder) look(always bool) {
	if r.over {
		return
	}
	r.looked = time.Now()
	h := wire.Hint{}
	for i, typed := range r.inputs {
		if r.looked.Sub(typed) >= hintAfterInput {
			h.In = uint64(i + 1)
		}
	}
	fd := int(r.terminal.TTY.Fd())
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	foreground, errGroup := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || errGroup != nil {
		return
	}
	for _, f := range []struct {
		flag wire.TerminalFlags
		set  bool
	}{
		{wire.Canonical, modes.Lflag&unix.ICANON != 0},
		{wire.Echo, modes.Lflag&unix.ECHO != 0},
		{wire.EchoErase, modes.Lflag&unix.ECHOE != 0},
		{wire.EchoControl, modes.Lflag&unix.ECHOCTL != 0},
		{wire.Signals, modes.Lflag&unix.ISIG != 0},
		{wire.Shell, foreground == r.terminal.Cmd.Process.Pid},
		{wire.Extended, modes.Lflag&unix.IEXTEN != 0},
		{wire.UsualKeys, modes.Cc[unix.VERASE] == 0x7f && modes.Cc[unix.VKILL] == 'U'&0x1f &&
			modes.Cc[unix.VWERASE] == 'W'&0x1f && modes.Iflag&unix.IUTF8 != 0},
	} {
		if f.set {
			h.Terminal |= f.flag
		}
	}
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", foreground)); err == nil {
		hash := fnv.New32a()
		hash.Write(bytes.TrimSpace(name))
		h.Context = uint16(hash.Sum32()) ^ uint16(hash.Sum32()>>16)
	}
	same := h
	same.In = r.hint.In
	if always || same != r.hint {
		r.hint = h
		r.add(trace.Hint, []byte(trace.FormatHint(h)))
	}
}
