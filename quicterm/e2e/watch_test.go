//go:build linux || darwin

package e2e

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/quicterm/quicterm/bench/rig"
)

// Who watches sees what the writer sees, and cannot type, resize, signal or end the session.
func TestWatch(t *testing.T) {
	h := newHost(t)
	h.Start()
	writer := h.Shell(h.Addr, "-s", "work")
	writer.Run("echo be''fore", "before")
	watcher := rig.Open(t, h.QT("watch", "work"))
	watcher.Expect("before")
	writer.Expect(`\x1b\]2;qt: \S+@127.0.0.1\S* watches this session`)
	watcher.Send("typed\r")
	watcher.Send("~?")
	watcher.Expect("You watch")
	if err := pty.Setsize(watcher.TTY, &pty.Winsize{Cols: 50, Rows: 10}); err != nil {
		t.Fatal(err)
	}
	watcher.Expect("80x24 from 0,")
	writer.Run("stty size", "24 80")
	writer.Run("echo af''ter", "after")
	watcher.Expect("24 80")
	watcher.Expect("after")
	watcher.Send("\r~.")
	watcher.Expect("left; qt watch .* 127.0.0.1 work watches again\r\n")
	if got := watcher.Exit(); got != 0 {
		t.Errorf("exit status of the watcher: %d, want 0", got)
	}
	writer.Expect("has left this session")
	again := rig.Open(t, h.QT("watch", "work"))
	again.Expect("after")
	again.Send("\x03")
	again.Expect("qt: left; ")
	writer.Run("echo st''ill here", "still here")
	if strings.Contains(writer.Out.String(), "typed") {
		t.Error("what the watcher typed has reached the program")
	}
	writer.Send("exit 3\r")
	if got := writer.Exit(); got != 3 {
		t.Errorf("exit status of the writer: %d, want 3", got)
	}
}

// Two clients that share a session both type, and both see it.
func TestShare(t *testing.T) {
	h := newHost(t)
	h.Start()
	first := h.Shell(h.Addr, "-s", "work")
	first.Run("echo be''fore", "before")
	second := rig.Open(t, h.Via(h.Addr, "attach", []string{"--share"}, "work"))
	second.Expect("before")
	first.Expect(`\x1b\]2;qt: \S+ shares this session and can type`) // in the title: the scrollback is the session's
	second.Run("echo from the se''cond", "from the second")
	first.Expect("from the second")
	first.Run("echo from the fi''rst", "from the first")
	second.Expect("from the first")
	second.Send("\r~.")
	second.Expect("left; qt attach --share .* 127.0.0.1 work resumes, ")
	first.Run("echo al''one", "alone")
}

// Peek shows the screen, in each form, and the writer's size and session stay.
func TestPeek(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run(`clear; printf '\033[31mred\033[0m \344\275\240 <&>\033]2;a title\007\n'`, "<&>")
	peek := func(flags ...string) string {
		t.Helper()
		cmd := h.Via(h.Addr, "peek", flags, "work")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		said := ""
		if len(flags) > 1 { // an image
			said = "qt: characters that the font of images does not have: 1, drawn as boxes or left out (U+4F60); --ansi and --json have them\n"
		}
		if err != nil || stderr.String() != said {
			t.Fatalf("peek %q: %v, %s", flags, err, &stderr)
		}
		return string(out)
	}
	if got := peek(); got != "red 你 <&>\n$\n" {
		t.Errorf("text: %q", got)
	}
	if got := peek("--ansi"); got != "\x1b[0;31mred\x1b[0m 你 <&>\n$\n" {
		t.Errorf("text with colours: %q", got)
	}
	json := peek("--json")
	if !regexp.MustCompile(`"cols":80,"rows":24,"cursor":\[2,1\].*"title":"a title".*\[\["red","p1","",""\],\[" 你 <&>","","",""\]\]`).MatchString(json) {
		t.Errorf("JSON: %s", json)
	}
	file := filepath.Join(h.Dir, "screen.png")
	peek("--png", file)
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(saved)); err != nil {
		t.Error(err)
	}
	if got := peek("--png", "-"); got != string(saved) {
		t.Errorf("the image on standard output has %d bytes, that in the file %d", len(got), len(saved))
	}
	x.Run("echo al''one", "alone")
	if got, err := h.QT("peek", "none").CombinedOutput(); err == nil || !strings.Contains(string(got), `qt: 127.0.0.1: there is no session "none"`) {
		t.Errorf("peek at no session: %s, %v", got, err)
	}
}

// An attach shows of the output from before what it is asked for.
func TestReplay(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	x.Run("for i in $(seq 100 199); do echo line $i; done", "line 199")
	x.Send("~.")
	x.Exit()
	for _, test := range []struct{ replay, first, not string }{ // each adds some lines
		{"screen", "line 18[0-9]", "line 160"},
		{"lines=50", "line 160", "line 110"},
		{"raw", "line 100", "line 99"},
		{"none", `\$ `, "line 199"},
	} {
		y := rig.Open(t, h.Via(h.Addr, "attach", []string{"--replay", test.replay}, "work"))
		y.Send("\r")
		y.Expect(test.first)
		y.Run("echo re''ady", "ready")
		if strings.Contains(y.Out.String(), test.not) {
			t.Errorf("%s shows %q: %q", test.replay, test.not, y.Out)
		}
		y.Send("\r~.")
		y.Exit()
	}
}
