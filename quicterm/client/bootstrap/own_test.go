//go:build unix

package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A fakeStream is a command that a function is, and that ends when it returns a status.
type fakeStream struct {
	net.Conn
	ended  chan struct{}
	status int
}

func (s *fakeStream) ExitStatus() int {
	<-s.ended
	return s.status
}

// fakeOwn puts a function in the place of a server, on a machine without ssh. An error of the
// function is that of the login.
func fakeOwn(t *testing.T, serve func(c net.Conn, lines *bufio.Reader, errs io.Writer) int, failed error) *SSH {
	t.Helper()
	s, _ := fakeSSH(t, "")
	t.Setenv("PATH", t.TempDir())
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	s.Own = func(_ context.Context, _ bool, command string, errs io.Writer) (io.ReadWriteCloser, error) {
		if failed != nil {
			return nil, failed
		}
		if command != remoteCommand([]byte("first")) {
			t.Errorf("runs %q", command)
		}
		ours, theirs := net.Pipe()
		f := &fakeStream{Conn: ours, ended: make(chan struct{})}
		wg.Go(func() {
			defer close(f.ended)
			defer theirs.Close()
			f.status = serve(theirs, bufio.NewReader(theirs), errs)
		})
		return f, nil
	}
	t.Cleanup(s.Close)
	return s
}

func grantOf(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(os.Getenv("DIR"), "grant"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOwnStream(t *testing.T) {
	var first, grant string
	s := fakeOwn(t, func(c net.Conn, lines *bufio.Reader, errs io.Writer) int {
		first, _ = lines.ReadString('\n')
		io.WriteString(c, "motd\n"+grant)
		io.WriteString(errs, "noise of a shell\n")
		io.Copy(c, lines)
		return 0
	}, nil)
	grant = grantOf(t)
	c, err := s.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"second", strings.Repeat("0123456789abcdef", 1<<12)} {
		go func() { c.Write([]byte(part)) }()
		b := make([]byte, len(part))
		if _, err := io.ReadFull(c, b); err != nil || string(b) != part {
			t.Fatalf("%d bytes %.20q, %v; want %.20q", len(b), b, err, part)
		}
	}
	if first != string(OpenLine([]byte("first"))) {
		t.Errorf("the first line is %q", first)
	}
	if s.Port() != 60001 || s.CheckHost(s.Key()) != nil {
		t.Errorf("port %d, key %v; want those of the grant", s.Port(), s.Key())
	}
	s.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a read goes on after Close")
	}
}

// What goes wrong behind a login of our own is told as it is told of ssh.
func TestOwnFails(t *testing.T) {
	for _, test := range []struct {
		name, printed, errs string
		status              int
		want                string
	}{
		{"missing", "motd\nquicterm-missing Linux armv7l\n", "", 127, "qtd is not installed on host"},
		{"echo", "echo", "", 0, "host runs another program than qtd, which repeats what it is sent"},
		{"error of qtd", "", "noise\nqtd: \x1b[2Jno space", 1, "qtd on host: ?[2Jno space"},
		{"older qtd", "", "qtd: unknown flag: --stdio\n", 2, "update it"},
		{"cannot run", "", "sh: qtd: Exec format error\n", 126, "qtd on host cannot be run: sh: qtd: Exec format error"},
		{"other program", "only\tsftp\n", "", 1, "host runs another program than qtd, which says: only sftp"},
		{"nothing", "", "", 3, "host runs another program than qtd, which says nothing and ends with status 3"},
		{"bad grant", linePrefix + "{}\n", "", 0, "grant of host: bad address"},
		{"silent", "wait", "", 0, "host runs another program than qtd, which neither answers nor ends"},
		{"endless", "endless", "", 0, "host"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := fakeOwn(t, func(c net.Conn, lines *bufio.Reader, errs io.Writer) int {
				first, _ := lines.ReadString('\n')
				io.WriteString(errs, test.errs)
				switch test.printed {
				case "echo":
					io.WriteString(c, first)
				case "wait":
					io.Copy(io.Discard, lines)
				case "endless":
					for _, err := io.WriteString(c, strings.Repeat("x", 1000)); err == nil; {
						_, err = io.WriteString(c, strings.Repeat("x", 1000))
					}
				default:
					io.WriteString(c, test.printed)
				}
				return test.status
			}, nil)
			if test.printed == "wait" {
				s.wait = 10 * time.Millisecond
			}
			if err := fails(t, s, true); !strings.HasPrefix(err.Error(), test.want) && !(test.want == "update it" && errors.As(err, new(*VersionError))) {
				t.Errorf("got %q, want %q", err, test.want)
			}
		})
	}
}

// A goneStream is of a command that has printed something and ended.
type goneStream struct{ io.Reader }

func (goneStream) Write([]byte) (int, error) { return 0, io.EOF }
func (goneStream) Close() error              { return nil }

// What a command prints counts if it ends before it reads.
func TestOwnGone(t *testing.T) {
	s := fakeOwn(t, nil, nil)
	s.Own = func(context.Context, bool, string, io.Writer) (io.ReadWriteCloser, error) {
		return goneStream{strings.NewReader("quicterm-missing Linux armv7l\n")}, nil
	}
	if err := fails(t, s, true); !errors.As(err, new(*MissingError)) {
		t.Errorf("got %v", err)
	}
}

// A login that fails says so in the carrier, and what it needs of the user.
func TestOwnLoginFails(t *testing.T) {
	denied := &LoginError{"host", "ann: Permission denied (password)"}
	s := fakeOwn(t, nil, denied)
	if err := fails(t, s, true); !errors.Is(err, denied) || s.Needs() != "" {
		t.Errorf("got %v, needs %q", err, s.Needs())
	}
	if err := fails(t, s, false); !errors.Is(err, denied) || s.Needs() != denied.Reason {
		t.Errorf("without the user: got %v, needs %q", err, s.Needs())
	}
	s.Own = nil
	if _, err := s.Dial(t.Context(), true); !errors.Is(err, ErrNoSSH) {
		t.Errorf("without a login of our own: %v", err)
	}
}

// Close ends a login that waits, and one whose carrier was never written to.
func TestOwnClosed(t *testing.T) {
	s := fakeOwn(t, func(_ net.Conn, lines *bufio.Reader, _ io.Writer) int {
		io.Copy(io.Discard, lines)
		return 0
	}, nil)
	unused, err := s.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	w := fakeOwn(t, nil, nil)
	w.Own = func(ctx context.Context, _ bool, _ string, _ io.Writer) (io.ReadWriteCloser, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	waiting, err := w.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []io.ReadCloser{unused, waiting} {
		c.Close()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("carrier %d can be read after Close", i)
		}
	}
	s.Close()
	if _, err := s.Dial(t.Context(), true); err == nil {
		t.Error("dialed after Close")
	}
}

func TestTail(t *testing.T) {
	long := strings.Repeat("x", maxShown)
	all := fmt.Sprintf("1\n\n 2 \r\n3\x1b[2J\n%sxxx\nlast", long)
	for _, n := range []int{1, 7, len(all)} {
		tl := &tail{log: slog.New(slog.DiscardHandler)}
		for rest := all; rest != ""; rest = rest[min(n, len(rest)):] {
			tl.Write([]byte(rest[:min(n, len(rest))]))
		}
		if got, want := strings.Join(tl.lines(), "|"), "3?[2J|"+long+"|last"; got != want {
			t.Errorf("by %d bytes: %q, want %q", n, got, want)
		}
	}
}

// A daemon that sends nothing behind its grant is given up.
func TestOwnSilentDaemon(t *testing.T) {
	var s *SSH
	var grant string
	s = fakeOwn(t, func(c net.Conn, lines *bufio.Reader, _ io.Writer) int {
		lines.ReadString('\n')
		s.wait = 50 * time.Millisecond // from the grant on
		io.WriteString(c, grant)
		io.Copy(io.Discard, lines)
		return 0
	}, nil)
	grant = grantOf(t)
	c, err := s.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, errSilent) {
		t.Errorf("%d bytes, %v; want that it does not answer", n, err)
	}
}
