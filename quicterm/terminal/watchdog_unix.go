//go:build unix

package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tellAfter is how long a change of the terminal waits to be told to the watchdog: programs
	// hide and show the cursor each time they draw.
	tellAfter = 100 * time.Millisecond

	// tellTimeout is how long the watchdog may take to read: a pipe that is full has about a
	// hundred changes that it has not read, because it is stopped. A busy machine stops this
	// process for less.
	tellTimeout = time.Second

	// dismissTimeout is how long the watchdog may take to end.
	dismissTimeout = 2 * time.Second
)

// watch is what a watchdog runs. The signals of a terminal do not end it, nor does the end of
// its window. It restores the modes only if no shell has done that already: only our raw mode
// has no output processing.
const watch = `trap '' HUP INT QUIT TERM TSTP TTIN TTOU
undo=
while IFS= read -r line; do undo=$line; done
[ "$undo" = done ] && exit
printf %b "$undo"
[ -n "$1" ] || exit
case $(stty -a <&3) in *-opost*) stty $1 <&3 ;; esac
`

// A watchdog is a process that restores the terminal if this one is killed. Its methods may be
// called on nil.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File

	mu    sync.Mutex
	undo  string // what is to be printed
	told  string // what it knows of that
	timer *time.Timer
}

// newWatchdog starts a watchdog for a terminal in the modes that are to be restored. It
// returns nil if that is not possible.
func newWatchdog(in, out *os.File) *watchdog {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	cmd := exec.Command("/bin/sh", "-c", watch, "qt", sttyArguments(int(in.Fd())))
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = r, out, []*os.File{in}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // kill and ^C of the job do not reach it
	if cmd.Start() != nil {
		w.Close()
		return nil
	}
	d := &watchdog{cmd: cmd, pipe: w}
	d.timer = time.AfterFunc(time.Hour, d.tell)
	d.timer.Stop()
	return d
}

// set tells what restores the terminal from now on.
func (d *watchdog) set(undo []byte) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var line strings.Builder
	for _, c := range undo {
		fmt.Fprintf(&line, "\\0%03o", c)
	}
	if d.undo = line.String(); d.undo != d.told {
		d.timer.Reset(tellAfter)
	}
}

// tell tells it at once.
func (d *watchdog) tell() {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.undo != d.told {
		d.told = d.undo
		d.pipe.SetWriteDeadline(time.Now().Add(tellTimeout))
		if _, err := fmt.Fprintln(d.pipe, d.told); err != nil {
			d.cmd.Process.Kill() // it would restore what half a line says
		}
	}
}

// dismiss ends the watchdog, and waits for its end.
func (d *watchdog) dismiss() {
	if d == nil {
		return
	}
	d.timer.Stop()
	d.pipe.SetWriteDeadline(time.Now().Add(dismissTimeout))
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintln(d.pipe, "done")
	d.undo = d.told
	kill := time.AfterFunc(dismissTimeout, func() { d.cmd.Process.Kill() })
	d.pipe.Close()
	d.cmd.Wait()
	kill.Stop()
}

// sttyArguments returns the arguments by which stty restores those modes of a terminal that
// makeRaw changes, or nothing if it is no terminal.
func sttyArguments(fd int) string {
	modes, err := unix.IoctlGetTermios(fd, getModes)
	if err != nil {
		return ""
	}
	var args []string
	add := func(on bool, name string) {
		if !on {
			name = "-" + name
		}
		args = append(args, name)
	}
	add(modes.Oflag&unix.OPOST != 0, "opost")
	add(modes.Iflag&unix.BRKINT != 0, "brkint")
	add(modes.Iflag&unix.PARMRK != 0, "parmrk")
	add(modes.Iflag&unix.ISTRIP != 0, "istrip")
	add(modes.Iflag&unix.IGNBRK != 0, "ignbrk")
	add(modes.Iflag&unix.INLCR != 0, "inlcr")
	add(modes.Iflag&unix.IGNCR != 0, "igncr")
	add(modes.Iflag&unix.ICRNL != 0, "icrnl")
	add(modes.Iflag&unix.IXON != 0, "ixon")
	add(modes.Lflag&unix.ECHO != 0, "echo")
	add(modes.Lflag&unix.ECHONL != 0, "echonl")
	add(modes.Lflag&unix.ICANON != 0, "icanon")
	add(modes.Lflag&unix.ISIG != 0, "isig")
	add(modes.Lflag&unix.IEXTEN != 0, "iexten")
	return strings.Join(args, " ")
}
