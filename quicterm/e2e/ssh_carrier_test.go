//go:build linux || darwin

package e2e

import (
	"bufio"
	"encoding/base64"
	"io"
	"log/slog"
	"os/exec"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// ssh's standard streams are a carrier on which a client needs no login.
func TestCarrierOverSSH(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	b := &bootstrap.SSH{Host: target, Args: []string{"-F", s.Config(), "--", target}, Log: slog.Default(), Say: func(line string) { t.Log(line) }}
	defer b.Close()
	c, err := b.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(messages(t, &wire.Hello{Software: "test"}, &wire.List{})); err != nil {
		t.Fatal(err)
	}
	wantListing(t, c)
	if b.Port() == 0 {
		t.Error("no port")
	}
}

// messages returns messages as they are sent.
func messages(t *testing.T, bodies ...wire.Body) (b []byte) {
	t.Helper()
	for _, v := range bodies {
		m, err := wire.New(v)
		if err != nil {
			t.Fatal(err)
		}
		b = m.Append(b)
	}
	return b
}

func wantListing(t *testing.T, r io.Reader) {
	t.Helper()
	m, err := wire.Read(r, wire.MaxMessage)
	if err == nil {
		err = m.Decode(new(wire.Listing))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The daemon gets the first bytes of the environment before standard input has any, and once. It
// gets nothing more from a client that opens otherwise there.
func TestEarlyOpen(t *testing.T) {
	s := newSSHHost(t)
	first := messages(t, &wire.Hello{Software: "test"}, &wire.List{})
	start := func() (in io.Writer, out *bufio.Reader, cmd *exec.Cmd) {
		cmd = exec.Command(s.Path("remote/qtd"), "grant", "--stdio")
		cmd.Env = append(s.Env(), bootstrap.OpenVariable+"="+base64.StdEncoding.EncodeToString(first))
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		r, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(rig.Patience, func() { cmd.Process.Kill() })
		t.Cleanup(func() { timer.Stop() })
		out = bufio.NewReader(r)
		for range 2 { // an empty line, and the grant
			if _, err := out.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		wantListing(t, out)
		return in, out, cmd
	}
	in, out, cmd := start()
	in.Write(append(bootstrap.OpenLine(first), messages(t, &wire.List{})...))
	wantListing(t, out)
	in.(io.Closer).Close()
	if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
		t.Errorf("%d bytes more, %v", len(rest), err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}

	in, out, cmd = start()
	in.Write(append(bootstrap.OpenLine(first[1:]), messages(t, &wire.List{})...))
	if rest, _ := io.ReadAll(out); len(rest) > 0 {
		t.Errorf("%d bytes for another opening", len(rest))
	}
	if err := cmd.Wait(); err == nil {
		t.Error("qtd ends well after another opening")
	}
}
