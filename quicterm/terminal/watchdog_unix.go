//go:build unix

package terminal

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/quicterm/screen"
)

// dismissTimeout is how long the watchdog may take to end.
const dismissTimeout = 2 * time.Second

// watch is what a watchdog runs. The signals of a terminal do not end it, nor does the end of
// its window. The last line that it reads says whether it is on. It restores the modes only if no shell has done
// that already: only our raw mode has no output processing.
const watch = `trap '' HUP INT QUIT TERM TSTP TTIN TTOU
last=on
while IFS= read -r state; do last=$state; done
[ "$last" = off ] && exit
printf %s "$1"
[ -n "$2" ] || exit
case $(stty -a <&3) in *-opost*) stty $2 <&3 ;; esac
`

// A watchdog is a process that restores the terminal if this one is killed. It knows nothing of what programs have
// changed, and resets all that it can. Its methods may be called on nil.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// newWatchdog starts a watchdog for a terminal in the modes that are to be restored. It
// returns nil if that is not possible.
func newWatchdog(in, out *os.File) *watchdog {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	reset := screen.Reset + popProgramTitle + popTitle + "\r\n" + eraseBelow
	cmd := exec.Command("/bin/sh", "-c", watch, "qt", reset, sttyArguments(int(in.Fd())))
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = r, out, []*os.File{in}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // kill and ^C of the job do not reach it
	if cmd.Start() != nil {
		w.Close()
		return nil
	}
	return &watchdog{cmd: cmd, pipe: w}
}

// set turns the watchdog on or off. It is on at first.
func (d *watchdog) set(state string) {
	if d != nil {
		d.pipe.WriteString(state + "\n")
	}
}

const watchdogOn, watchdogOff = "on", "off"

// dismiss ends the watchdog, and waits for its end.
func (d *watchdog) dismiss() {
	if d == nil {
		return
	}
	d.set(watchdogOff)
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
