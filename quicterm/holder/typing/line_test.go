package typing

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A line that is typed into a shell without marks of its own runs as if it was typed alone, whatever is in it.
func TestMarkedLine(t *testing.T) {
	id := wire.EntryID{0xab, 0xcd}
	const nonce = "abcd0000000000000000000000000000"
	for _, shell := range []string{"sh", "bash", "zsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		for _, test := range []struct {
			line, want string
			status     int
		}{
			{"echo hello", "hello\n", 0},
			{`echo "it's" 'a "quote"'`, "it's a \"quote\"\n", 0},
			{"false", "", 1},
			{"echo a; # a comment", "a\n", 0},
			{"sh -c 'exit 7'", "", 7},
			{"sleep 0 &", "", 0},
			{"echo 'C;" + nonce + "'", "C;" + nonce + "\n", 0},
			{`printf '%s\n' 'a\\b'`, map[bool]string{true: `a\b`, false: `a\\b`}[shell == "fish"] + "\n", 0},
		} {
			line := marked([]byte(test.line), id, wire.ContextOf([]byte(shell)))
			out, err := exec.Command(shell, "-c", string(line)).Output()
			if err != nil {
				t.Errorf("%s: %q: %v", shell, test.line, err)
				continue
			}
			want := fmt.Sprintf("\x1b]8133;C;%s\a%s\x1b]8133;D;%d;%[1]s\a", nonce, test.want, test.status)
			if string(out) != want {
				t.Errorf("%s: %q gave %q, want %q", shell, test.line, out, want)
			}
		}
	}
}
