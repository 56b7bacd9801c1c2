package e2e

import (
	"flag"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

var (
	manySends = flag.Int("sends", 8, "how many lines TestSendMany sends to each program")
	busyLoops = flag.Int("busy", 0, "how many processes TestSendMany keeps busy meanwhile")
)

// Of lines that are sent one after the other, to a program that is at work or waits, none is lost and no Enter comes
// twice: the program counts its prompts.
func TestSendMany(t *testing.T) {
	for range *busyLoops {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			loop.Process.Kill()
			loop.Wait()
		})
	}
	t.Run("all", func(t *testing.T) { // which end before the loops do
		for _, test := range []struct{ name, program, line string }{
			{"bash", `exec env FILE=DIR/bash PS1='$ ' PROMPT_COMMAND='echo prompt >>"$FILE"' HISTFILE= bash --norc --noprofile`,
				`echo %d >>"$FILE"`},
			{"python3", "exec env PYTHONSTARTUP=DIR/startup.py python3 -q", "file.write('%d\\n')"},
		} {
			t.Run(test.name, func(t *testing.T) {
				if missing := missingOf(test.name); missing != "" {
					t.Skip(missing + " is not installed")
				}
				h := newHost(t)
				h.Start()
				h.Write("startup.py", fmt.Sprintf(`
import sys
file = open(%q, "w", buffering=1)
class Prompt:
    def __str__(self):
        file.write("prompt\n")
        return "> "
sys.ps1 = Prompt()
`, h.Path("python3")))
				driven(t, h, "work", strings.ReplaceAll(test.program, "DIR", h.Dir))
				drive(t, h, "wait", "--reading", "work")
				want := []string{"prompt"}
				began := time.Now()
				for i := range *manySends {
					if out, status := drive(t, h, "send", "--enter --timeout 1m", "work", fmt.Sprintf(test.line, i)); status != 0 {
						t.Fatalf("line %d: %q, status %d", i, out, status)
					}
					want = append(want, fmt.Sprint(i), "prompt")
				}
				t.Logf("%d lines, each within %v", *manySends, time.Since(began)/time.Duration(max(*manySends, 1)))
				var got []string
				for deadline := time.Now().Add(rig.Patience); len(got) < len(want) && time.Now().Before(deadline); {
					drive(t, h, "wait", "--reading", "work")
					got = strings.Fields(h.Read(test.name))
				}
				for i := range want {
					if i >= len(got) || got[i] != want[i] {
						t.Fatalf("%s has read, from line %d on, %q, want %q", test.name, i/2, got[min(i, len(got)):], want[i:])
					}
				}
				if more := slices.Clone(got[len(want):]); len(more) > 0 {
					t.Errorf("%s has also read %q", test.name, more)
				}
			})
		}
	})
}
