//go:build linux || darwin

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
)

// A recording plays on a terminal with keys, asks the terminal nothing, and leaves it as it was.
func TestPlay(t *testing.T) {
	h := newHost(t)
	h.Write("file.cast", `{"version":3,"term":{"cols":100,"rows":24}}
[0,"o","\u001b[c\u001b]10;?\u0007\u001b[?1049h\u001b[?1003h\u001b[31mfirst"]
[3600,"o","skipped"]
[0,"m","marker"]
[0,"o","second"]
[3600,"o","third"]
`)
	cmd := exec.Command("sh", "-c", `a=$(stty -g); qt play file.cast; echo status $?; test "$a" = "$(stty -g)" && echo same modes`)
	cmd.Dir = h.Dir
	cmd.Env = append(h.Env(), "PATH="+bin+string(filepath.ListSeparator)+"/usr/bin:/bin")
	x := rig.Open(t, cmd)
	x.Expect("of a terminal with 100 columns and 24 rows; this one has 80 and 24")
	x.Expect("first")
	x.Send("\x1b[A\x1bq") // keys of more than one byte do nothing
	x.Send("]")
	x.Expect("skipped.*second")
	x.Send("[")
	x.Expect(`\x1b\[\?1049l.*\x1b\[\?1003l`)
	x.Expect(`\x1b\[2J.*first`)
	x.Send("\x03")
	x.Expect(`\x1b\[\?1049l.*\x1b\[\?1003l`)
	x.Expect("status 0\r\nsame modes")
	if shown := x.Out.String(); strings.Contains(shown, "\x1b[c") || strings.Contains(shown, "?\a") || strings.Contains(shown, "third") {
		t.Errorf("shown: %q", shown)
	}
}

// When the recorded terminal changes its size, what it shows is drawn, and stays at the end.
func TestPlayResized(t *testing.T) {
	h := newHost(t)
	h.Write("file.cast", `{"version":3,"term":{"cols":80,"rows":24}}
[0,"o","before"]
[0,"r","100x30"]
[0,"o","\u001b[30;1Hbottom"]
[1,"o","\u001b[1;95Hright"]
`)
	cmd := exec.Command(filepath.Join(bin, "qt"), "play", "file.cast")
	cmd.Dir, cmd.Env = h.Dir, h.Env()
	x := rig.Open(t, cmd)
	x.Expect("before.*bottom.*100x30 from 0,7")
	x.Expect(`\x1b\[\?1049l.*before +right\r\n(\r\n)+bottom\r\n`)
	if got := x.Exit(); got != 0 {
		t.Errorf("exit status %d", got)
	}
}
