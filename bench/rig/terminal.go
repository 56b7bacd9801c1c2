//go:build linux || darwin

package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/creack/pty"

	"github.com/quicterm/quicterm/quicterm/session/gate"
)

// An Output is all that a process prints. The zero value is ready.
type Output struct {
	gate gate.Gate // of buf
	buf  bytes.Buffer
}

func (o *Output) Write(b []byte) (int, error) {
	o.gate.Lock()
	defer o.gate.Unlock()
	o.gate.Changed()
	return o.buf.Write(b)
}

func (o *Output) String() string {
	o.gate.Lock()
	defer o.gate.Unlock()
	return o.buf.String()
}

// Len returns how many bytes were printed.
func (o *Output) Len() int { return len(o.String()) }

// Await waits until what was printed from an offset on matches, and returns the
// match and its groups.
func (o *Output) Await(t T, from int, re *regexp.Regexp) []string {
	t.Helper()
	return o.awaitWithin(t, Patience, from, re)
}

func (o *Output) awaitWithin(t T, patience time.Duration, from int, re *regexp.Regexp) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var found []string
	o.gate.Lock()
	defer o.gate.Unlock()
	text := func() []byte { return o.buf.Bytes()[min(from, o.buf.Len()):] }
	err := o.gate.Wait(ctx, func() bool {
		for _, group := range re.FindSubmatch(text()) {
			found = append(found, string(group))
		}
		return found != nil
	})
	if err != nil {
		t.Fatalf("waited for %q, got:\n%s", re, text())
	}
	return found
}

// A Terminal is a process on a terminal, and its user.
type Terminal struct {
	T    T
	Cmd  *exec.Cmd
	TTY  *os.File // the user's side
	Out  *Output
	Read int           // how much of Out was expected so far
	done chan struct{} // closed when the terminal is closed by the process
}

// Open starts a process on a terminal of 80 columns and 24 rows.
func Open(t T, cmd *exec.Cmd) *Terminal {
	t.Helper()
	return OpenSized(t, cmd, 80, 24)
}

// OpenSized is Open on a terminal of another size.
func OpenSized(t T, cmd *exec.Cmd, cols, rows uint16) *Terminal {
	t.Helper()
	out := new(Output)
	x := start(t, cmd, out, cols, rows)
	x.Out = out
	return x
}

// Watch is Open for more output than fits memory: w gets it, and Expect cannot be used.
func Watch(t T, cmd *exec.Cmd, w io.Writer) *Terminal {
	t.Helper()
	return start(t, cmd, w, 80, 24)
}

func start(t T, cmd *exec.Cmd, w io.Writer, cols, rows uint16) *Terminal {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	x := &Terminal{T: t, Cmd: cmd, TTY: tty, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			w.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		tty.Close()
	})
	return x
}

// Shell opens a session with a shell that has a known prompt.
func (h *Host) Shell(addr netip.AddrPort, flags ...string) *Terminal {
	h.T.Helper()
	x := Open(h.T, h.Via(addr, "connect", append([]string{"-t"}, flags...), "exec env PS1='$ ' HISTFILE= sh"))
	x.Expect(`\$ `)
	return x
}

// Holder returns the process of the holder of the shell that types are for, which must have the prompt
// of [Host.Shell]. Between the two may be su, which has opened the session.
func (x *Terminal) Holder() (pid int) {
	x.T.Helper()
	x.Send(`p=$PPID; [ "$(cat /proc/$p/comm 2>/dev/null)" = su ] && ` +
		`p=$(awk '/^PPid:/ { print $2 }' /proc/$p/status); echo hol''der $p` + "\r")
	fmt.Sscan(x.Expect(`holder (\d+)\r`)[1], &pid)
	x.Expect(`\$ `)
	return pid
}

// Closed is closed when the process has closed its terminal, for example by its end.
func (x *Terminal) Closed() <-chan struct{} { return x.done }

// Expect waits until the terminal shows a match after the previous one, and returns it
// with its groups.
func (x *Terminal) Expect(re string) []string {
	x.T.Helper()
	return x.ExpectWithin(re, Patience)
}

// ExpectWithin is Expect with another limit.
func (x *Terminal) ExpectWithin(re string, patience time.Duration) []string {
	x.T.Helper()
	found := x.Out.awaitWithin(x.T, patience, x.Read, regexp.MustCompile(re))
	x.Read += strings.Index(x.Out.String()[x.Read:], found[0]) + len(found[0])
	return found
}

// Send types.
func (x *Terminal) Send(s string) {
	x.T.Helper()
	if _, err := x.TTY.WriteString(s); err != nil {
		x.T.Fatal(err)
	}
}

// Run types a command and waits for what it prints and the next prompt.
func (x *Terminal) Run(command, want string) {
	x.T.Helper()
	x.Send(command + "\r")
	x.Expect(want)
	x.Expect(`\$ `)
}

// Exit waits for the end of the process and returns its exit status.
func (x *Terminal) Exit() int {
	x.T.Helper()
	timer := time.AfterFunc(Patience, func() { x.Cmd.Process.Kill() })
	defer timer.Stop()
	x.Cmd.Wait()
	return x.Cmd.ProcessState.ExitCode()
}
