//go:build linux || darwin

package e2e

import (
	"fmt"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// Input and output during an outage arrive after it. The title says that there is no
// contact.
func TestOutage(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr())
	x.Run("cd "+h.Dir, "cd")
	x.Run(`printf '\033]2;my title\007'; mkfifo go; (read x < go; echo $x; seq 1 5000) & echo ready`, "ready")
	p.Set(netem.Config{Down: true})
	x.Send("echo ty''ped > go; wait\r")
	x.Expect(`\x1b\]2;qt: no contact since [0-9:]+, reconnecting`)
	p.Set(netem.Config{})
	from := x.Read
	x.Expect(`\x1b\[23;2t\x1b\]2;my title\x1b\\`)
	x.Read = from
	want := "typed\r\n"
	for n := 1; n <= 5000; n++ {
		want += fmt.Sprintf("%d\r\n", n)
	}
	got := x.Expect(`(?s)typed.*5000\r\n`)[0]
	// The client sets the title anywhere in the output, and marks what it draws as one update.
	title := regexp.MustCompile(`\x1b\[2[23];2t|\x1b\]2;[^\a\x1b]*(\a|\x1b\\)|\x1b\[\?2026[hl]`)
	if got = title.ReplaceAllString(got, ""); got != want {
		t.Errorf("got %q", got)
	}
	x.Run("echo on", "on")
}

// The daemon is killed and started again: the session continues after a wait.
func TestDaemonRestart(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	x.Run("a=kept; echo $$", "[0-9]+")
	for range 2 {
		h.Stop(syscall.SIGKILL)
		x.Send("echo $a and")
		h.Start()
		x.Run(" typed meanwhile", "kept and typed meanwhile")
	}
	x.Send("exit\r")
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
}

// A client that only receives output, without input, notices a restarted daemon by its
// next keepalive.
func TestDaemonRestartWatched(t *testing.T) {
	const keepalive = 5 * time.Second
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr)
	// A shell of its own: an interactive one may start the next sleep between ^C and its signal.
	x.Send("sh -c 'trap exit INT; i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.1; done'\r")
	x.Expect("tick 10\r\n")
	h.Stop(syscall.SIGKILL)
	time.Sleep(500 * time.Millisecond)
	h.Start()
	listening := time.Now()
	x.Read = x.Out.Len()
	x.ExpectWithin("tick [0-9]+\r\n", keepalive+15*time.Second) // a path is given up after 3 keepalives
	t.Logf("output continues %v after the daemon listens again", time.Since(listening))
	x.Send("\x03")
	x.Run("echo done", "done")
}

// A pipe continues with every byte after a new address, an outage and a restart of the
// daemon.
func TestPipeOutage(t *testing.T) {
	h := newHost(t)
	h.Start()
	p := h.Proxy(netem.Config{})
	in := random(8 << 20)
	cmd := h.Via(p.Addr(), "connect", nil, "cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := new(rig.Output)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) // if the test ends before the client
	quarter := len(in) / 4
	anything := regexp.MustCompile("(?s).")
	for i := range 4 {
		switch i {
		case 1:
			p.Rebind()
		case 2:
			p.Set(netem.Config{Down: true})
		case 3:
			h.Stop(syscall.SIGKILL)
			h.Start()
			p.Set(netem.Config{})
		}
		if _, err := stdin.Write(in[i*quarter : (i+1)*quarter]); err != nil {
			t.Fatal(err)
		}
		if i < 2 {
			out.Await(t, i*quarter, anything) // so that the events are spread over the stream
		}
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if out.String() != string(in) {
		t.Errorf("%d bytes came back, not the %d that were sent", out.Len(), len(in))
	}
}

// Where nothing answers, the client says so after 2 s, and gives up after 5 s. Where no program has the port, it says that
// at once.
func TestNoAnswer(t *testing.T) {
	h := newHost(t)
	h.Start()
	silent := h.Proxy(netem.Config{Down: true}).Addr()
	start := time.Now()
	x := rig.Open(t, h.Via(silent, "connect", nil, "true"))
	x.Expect(fmt.Sprintf("^qt: no answer yet from 127.0.0.1, UDP and TCP port %d\r\n", silent.Port()))
	if took := time.Since(start); took < 2*time.Second {
		t.Errorf("it complains after %v", took)
	}
	x.Expect(fmt.Sprintf("^qt: 127.0.0.1, UDP and TCP port %d: no answer: by UDP .*no answer within 5s; by TCP .*refused: check that qtd runs there", silent.Port()))
	x.Exit()
	h.Stop(syscall.SIGTERM)
	x = rig.Open(t, h.QT("connect", "true"))
	x.Expect(fmt.Sprintf("^qt: 127.0.0.1, UDP and TCP port %d: no answer: .*refused: check that qtd runs there", h.Addr.Port()))
	x.Exit()
}
