//go:build linux || darwin

package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Without a terminal, a command is a clean pipe.
func TestPipe(t *testing.T) {
	h := newHost(t)
	h.Start()
	tests := []struct {
		name     string
		command  []string
		in       string
		out, err string
		status   int
	}{
		{name: "output", command: []string{"echo", "hello"}, out: "hello\n"},
		{name: "words", command: []string{"--", "printf", "'%s|'", "a  b", "'c  d'"}, out: "a|b|c  d|"},
		{name: "status", command: []string{"exit 7"}, status: 7},
		{name: "signal", command: []string{"kill -TERM $$"}, status: 143,
			err: "qt: session 1 on 127.0.0.1 was killed by SIGTERM, at TIME\n"},
		{name: "errors apart", command: []string{"echo out; echo err >&2"}, out: "out\n", err: "err\n"},
		{name: "input", command: []string{"cat"}, in: "some\x00bytes\xff", out: "some\x00bytes\xff"},
		{name: "end of input", command: []string{"wc -c"}, out: "0\n"},
		{name: "no newline", command: []string{"printf x"}, out: "x"},
		{name: "environment", command: []string{`echo "$TERM/$LC_NAME/$SECRET/$QUICTERM_SESSION"`}, out: "xterm/carried over//1\n"},
		{name: "not found", command: []string{"/no/such/program 2>/dev/null"}, status: 127},
		{name: "no terminal", command: []string{"test -t 0 || test -t 1 || test -t 2"}, status: 1},
	}
	clock := regexp.MustCompile(`\d\d:\d\d:\d\d`)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd := h.QT("connect", test.command...)
			var out, errs bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(test.in), &out, &errs
			got := exitStatus(t, cmd.Run())
			gotErr := clock.ReplaceAllString(errs.String(), "TIME")
			if out.String() != test.out || gotErr != test.err || got != test.status {
				t.Errorf("output %q, errors %q, status %d; want %q, %q, %d",
					out.String(), gotErr, got, test.out, test.err, test.status)
			}
		})
	}
	awaitList(t, h, "^ID.*\n$") // no session remains
}

// A large stream passes unchanged in both directions at once.
func TestPipeLarge(t *testing.T) {
	h := newHost(t)
	h.Start()
	size := 48 << 20
	if raceEnabled {
		size /= 8
	}
	in := random(size)
	cmd := h.QT("connect", "cat")
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(out) != sha256.Sum256(in) {
		t.Errorf("%d bytes came back, not the %d that were sent", len(out), len(in))
	}
}

// When the reader of the output closes its end, the program gets SIGPIPE or a write
// error.
func TestPipeReaderGone(t *testing.T) {
	h := newHost(t)
	h.Start()
	cmd := h.QT("connect", "yes; echo $? >&2")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := new(rig.Output)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 2)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "y\n" {
		t.Fatalf("read %q, %v", line, err)
	}
	out.Close()
	cmd.Wait()
	if !strings.Contains("141\n 1\n", errs.String()) || errs.String() == "" {
		t.Errorf("yes ended with %q, want an end by SIGPIPE or an error of writing", errs.String())
	}
}

// inputPipe returns the write end of a command's standard input.
func inputPipe(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	cmd.Stdin = r
	return w
}

// fill writes until no byte is accepted for one second: all buffers on the way to the
// program are full.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	zeros := make([]byte, 64<<10)
	for {
		w.SetWriteDeadline(time.Now().Add(time.Second))
		n, err := w.Write(zeros)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// The program gets that error also while unread input fills all buffers.
func TestPipeReaderGoneInputFull(t *testing.T) {
	h := newHost(t)
	h.Start()
	cmd := h.QT("connect", "yes")
	in := inputPipe(t, cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	fill(t, in)
	timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	out.Close()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 1 && got != 128+int(syscall.SIGPIPE) {
		t.Errorf("exit status %d, want that of yes on a broken pipe", got)
	}
}

// If the client cannot write the output, it fails.
func TestPipeWriteError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	h := newHost(t)
	h.Start()
	for _, command := range []string{"head -c 200000 /dev/zero", "echo hello"} {
		cmd := h.QT("connect", command)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		got := exitStatus(t, cmd.Run())
		if want := "qt: write the output: no space left on device\n"; got != 255 || !strings.HasSuffix(errs.String(), want) {
			t.Errorf("%s: status %d, %q; want 255, %q", command, got, errs.String(), want)
		}
	}
}

// The client exits with the program, even if the program did not read all input.
func TestPipeInputClosed(t *testing.T) {
	h := newHost(t)
	h.Start()
	cmd := h.QT("connect", "head -c 3")
	in, err := cmd.StdinPipe() // the test does not close it before the exit
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	go in.Write(random(1 << 20))
	out, err := cmd.Output()
	if err != nil || !bytes.Equal(out, random(1 << 20)[:3]) {
		t.Errorf("got %q, %v", out, err)
	}
}

// When the program closes its input, the writer of the input gets an error.
func TestPipeInputClosedEarly(t *testing.T) {
	h := newHost(t)
	h.Start()
	cmd := h.QT("connect", "head -1; exec 0<&-; cat "+h.Path("wait"))
	if err := syscall.Mkfifo(h.Path("wait"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	for err == nil {
		_, err = in.Write([]byte("yes\n"))
	}
	if !timer.Stop() || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write the input: %v, want a broken pipe", err)
	}
	if err := os.WriteFile(h.Path("wait"), nil, 0o600); err != nil { // ends the remote cat
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// If the client cannot read its input, it fails instead of ending the input.
func TestPipeInputUnreadable(t *testing.T) {
	h := newHost(t)
	h.Start()
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := h.QT("connect", "cat")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = dir, &errs
	got := exitStatus(t, cmd.Run())
	if want := "qt: read the input: is a directory\n"; got != 255 || errs.String() != want {
		t.Errorf("status %d, standard error %q; want 255, %q", got, errs.String(), want)
	}
}

// A second signal ends the client while the first waits behind unread input.
func TestPipeSecondSignal(t *testing.T) {
	h := newHost(t)
	h.Start()
	cmd := h.QT("connect", "echo ready; exec sleep 1000")
	in := inputPipe(t, cmd)
	out := new(rig.Output)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // if the test fails before the signals
	out.Await(t, 0, regexp.MustCompile("ready"))
	fill(t, in)
	timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	for exited := false; !exited; {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			exited = true
		case <-time.After(100 * time.Millisecond): // signals at the same moment count as one
		}
	}
	if got := cmd.ProcessState.ExitCode(); got != 143 {
		t.Errorf("exit status %d, want 143", got)
	}
}

// A signal that ends a client without a terminal is told, and what becomes of the command.
func TestPipeEndedBySignal(t *testing.T) {
	h := newHost(t)
	h.Start()
	const passed = "qt: SIGTERM is passed on to the command; a second signal hangs it up and ends qt\n"
	for _, test := range []struct {
		sig     syscall.Signal
		command string
		status  int
		says    string
	}{
		{syscall.SIGTERM, "echo ready; exec sleep 100", 143, passed},
		{syscall.SIGTERM, "trap 'exit 3' TERM; echo ready; read x", 3, passed},
		{syscall.SIGHUP, "echo ready; exec sleep 100", 129, "qt: ended by SIGHUP; the command is hung up, and its session ends\n"},
		{syscall.SIGINT, "echo ready; exec sleep 100", 130, ""},
	} {
		cmd := h.QT("connect", test.command)
		inputPipe(t, cmd)
		out, errs := new(rig.Output), new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
		out.Await(t, 0, regexp.MustCompile("ready"))
		cmd.Process.Signal(test.sig)
		cmd.Wait()
		timer.Stop()
		if got := cmd.ProcessState.ExitCode(); got != test.status || errs.String() != test.says {
			t.Errorf("%v to %q: status %d, %q; want %d, %q", test.sig, test.command, got, errs.String(), test.status, test.says)
		}
	}
}

// A signal during the login is told as well.
func TestLoginEndedBySignal(t *testing.T) {
	h := newHost(t)
	asked := make(chan bool, 1)
	addr := serveRaw(t, h, func(c *quic.Conn) {
		wire.Read(c, wire.MaxMessage)
		asked <- true
		io.Copy(io.Discard, c) // and no answer
	})
	cmd := h.Via(addr, "connect", nil, "true")
	errs := new(bytes.Buffer)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	<-asked
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 143 || errs.String() != "qt: ended by SIGTERM\n" {
		t.Errorf("status %d, %q", got, errs.String())
	}
}
