//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
)

// The shells of the tests, each with a startup file that has a prompt and hooks, and reads the integration twice.
var integrated = []struct {
	shell, file, startup string
	args                 []string
}{
	{"bash", "bashrc", `PROMPT_COMMAND='PS1="mine$? "; hooked=$((hooked + 1));'
		PS0='\e[31m'
		. FILE; . FILE`, []string{"--noprofile", "--rcfile", "bashrc", "-i"}},
	{"bash", "bashrc", `PS1='mine$? '; hooked=0 PROMPT_COMMAND=('hooked=$((hooked + 1))' true); set -u; . FILE; . FILE`,
		[]string{"--noprofile", "--rcfile", "bashrc", "-i"}},
	{"zsh", ".zshrc", `precmd() { PS1="mine$? "; hooked=$((hooked + 1)) }
		. FILE; . FILE`, []string{"-i"}},
	{"zsh", ".zshrc", `setopt prompt_subst no_unset; PS1='mine%? '; precmd_functions=(own)
		own() { hooked=$((${hooked-0} + 1)); }
		. FILE; . FILE`, []string{"-i"}},
	{"fish", "fish/config.fish", `function fish_prompt
			echo -n "mine$status "
			set -g hooked (math 0$hooked + 1)
		end
		function fish_greeting; end
		source FILE; source FILE`, []string{"-i"}},
}

// A shell with the lines tells of each command, keeps its prompt and its hooks, and of no command when none was run.
func TestIntegration(t *testing.T) {
	for i, test := range integrated {
		t.Run(fmt.Sprint(test.shell, i), func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(test.shell); err != nil {
				t.Skip(err)
			}
			dir := t.TempDir()
			text, err := integrations.ReadFile("integration/" + test.shell)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "marks"), string(text))
			write(t, filepath.Join(dir, test.file), strings.ReplaceAll(test.startup, "FILE", filepath.Join(dir, "marks")))
			strange := filepath.Join(dir, "a b%é")
			if err := os.Mkdir(strange, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(test.shell, test.args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8",
				"HOME="+dir, "ZDOTDIR="+dir, "XDG_CONFIG_HOME="+dir)
			x := rig.OpenSized(t, cmd, 120, 50)
			x.Expect("mine0 ")
			x.Send("echo on''e; echo tw''o\r")
			x.Expect(`(?s)one\r\ntwo\r\n.*mine0 `)
			x.Send("sh -c 'exit 7'\r")
			x.Expect("mine7 ")
			x.Send("\r")
			x.Expect("mine[07] ")
			x.Send("printf h''i\r")
			x.Expect("(?s)hi.*mine0 ")
			x.Send("cd 'a b%é'\r")
			x.Expect("mine0 ")
			x.Send("echo hooked=$hooked; exit 3\r")
			if hooked := x.Expect(`hooked=(\d+)`)[1]; hooked < "6" {
				t.Errorf("the shell's own hook was called %s times", hooked)
			}
			x.Exit()
			s := screen.New(120, 50, screen.Limits{})
			s.Write([]byte(x.Out.String()))
			var got []string
			for _, c := range s.Commands() {
				var output []string
				for _, row := range s.MainText(c.Output, c.End, c.Column) {
					output = append(output, picture.Line(row))
				}
				got = append(got, fmt.Sprintf("%d %q", c.Status, strings.Join(output, "\n")))
			}
			// zsh marks the end of a line without one before it calls a hook.
			want := regexp.MustCompile(`^0 "one\\ntwo\\n", 7 "", 0 "hi([#%]\\n)?", 0 "", (-1|3) "hooked=\d+\\n(exit\\n)?"$`)
			if all := strings.Join(got, ", "); !want.MatchString(all) {
				t.Errorf("commands %s\nwant %s\n%q", all, want, x.Out.String())
			}
			if _, path := s.Directory(); path != strange {
				t.Errorf("the directory is %q, want %q", path, strange)
			}
		})
	}
}

// Where no person looks, the lines do nothing.
func TestIntegrationIsQuiet(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			text, err := integrations.ReadFile("integration/" + shell)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "marks")
			write(t, file, string(text))
			for _, flag := range []string{"-c", "-ic"} {
				args := []string{flag, ". " + file + "; echo $PS0$__qt_runs$__qt_marks"}
				cmd := exec.Command(shell, args...)
				cmd.Env = append(os.Environ(), "TERM=dumb", "HOME="+filepath.Dir(file), "ZDOTDIR="+filepath.Dir(file))
				if out, err := cmd.Output(); err != nil || string(out) != "\n" {
					t.Errorf("%q: %q, %v", args, out, err)
				}
			}
		})
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
