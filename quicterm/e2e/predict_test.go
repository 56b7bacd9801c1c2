//go:build linux || darwin

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/screen"
)

// secretPrograms are shell scripts that ask for a secret of 8 characters as programs do, with
// their last question. They create the file $1 when they read it.
var secretPrograms = []struct{ name, question, script string }{
	{"echo off before the question", "Password: ", `
		stty -echo; printf 'Password: '; : >"$1"; read x`},
	{"echo off behind the question", "user: ", `
		printf '[sudo] password for user: '; stty -echo; : >"$1"; read x`},
	{"a question without a word for a secret", "Say it: ", `
		printf 'Say it: '; stty -echo; : >"$1"; read x`},
	{"typed ahead", "Wait", `
		stty -echo; printf 'Wait'; : >"$1"; sleep 1; printf '\nPassword: '; read x`},
	{"a new password", "Retype new password: ", `
		stty -echo; for q in 'New password: ' 'Retype new password: '; do
			printf "$q"; [ "$q" = 'New password: ' ] || { : >"$1"; read x; }; echo
		done`},
	{"a character at a time", "Enter passphrase: ", `
		stty -icanon -echo min 1; printf 'Enter passphrase: '; : >"$1"; x=
		while c=$(dd bs=1 count=1 2>/dev/null) && [ -n "$c" ]; do x=$x$c; done`},
	{"stars", "Enter PIN: ", `
		stty -icanon -echo min 1; printf 'Enter PIN: '; : >"$1"; x=
		while c=$(dd bs=1 count=1 2>/dev/null) && [ -n "$c" ]; do x=$x$c; printf '*'; done`},
}

// What is typed into a question for a secret is never drawn, although other keys are drawn before
// the server has answered: here, while no packet arrives.
func TestSecretsAreNotPredicted(t *testing.T) {
	h := newHost(t)
	h.Start()
	link := netem.Config{Delay: 20 * time.Millisecond}
	p := h.Proxy(link)
	x := h.Shell(p.Addr(), "--predict", "always")
	x.Send("echo re''ady; cat\r")
	x.Expect("ready")
	for _, key := range "shown" {
		x.Send(string(key))
		x.Expect(string(key))
	}
	drawAlone(x, p, link)
	p.Set(link)
	x.Send("\x03")
	x.Expect(`\^C`)
	x.Expect(`\$ `)

	const secret = "QWYVQWYV" // in no control sequence that is drawn
	dir := t.TempDir()
	for i, program := range secretPrograms {
		path, reads := filepath.Join(dir, fmt.Sprint("ask", i)), filepath.Join(dir, fmt.Sprint("reads", i))
		script := program.script + "\nstty sane; echo; echo \"it has ${#x} characters\"\n"
		if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		x.Send(fmt.Sprintf("sh %s %s\r", path, reads))
		x.Expect(program.question)
		for until := time.Now().Add(rig.Patience); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(reads); err == nil {
				break
			} else if time.Now().After(until) {
				t.Fatalf("%s: it does not ask: %v", program.name, err)
			}
		}
		from := x.Read
		for n, key := range secret {
			if n == len(secret)/2 {
				p.Set(netem.Config{Down: true})
			}
			x.Send(string(key))
			time.Sleep(30 * time.Millisecond)
		}
		p.Set(link)
		x.Send("\r")
		x.Expect("it has 8 characters")
		if shown := x.Out.String()[from:]; strings.ContainsAny(shown, secret) {
			t.Errorf("%s: the terminal was given %q", program.name, shown)
		}
		x.Expect(`\$ `)
	}
}

// drawAlone types until the client draws a key before the server can have answered, and returns the key. It
// leaves the link down.
func drawAlone(x *rig.Terminal, p *netem.Proxy, link netem.Config) (key string) {
	x.T.Helper()
	for _, c := range "QWYVZ" { // in no control sequence that is drawn
		p.Set(netem.Config{Down: true})
		x.Send(string(c))
		for until := time.Now().Add(2 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
			if strings.ContainsRune(x.Out.String()[x.Read:], c) {
				return string(c)
			}
		}
		p.Set(link) // the client has learned only now which program runs
		x.Expect(string(c))
	}
	x.T.Fatal("no key is drawn before the server answers")
	return ""
}

// However a client ends, what it has drawn and the server has not confirmed does not stay on the terminal.
func TestPredictionsDoNotStay(t *testing.T) {
	h := newHost(t)
	h.Start()
	for name, end := range map[string]func(x *rig.Terminal, p *netem.Proxy){
		"escape":  func(x *rig.Terminal, _ *netem.Proxy) { x.Send("\r~.") },
		"SIGTERM": func(x *rig.Terminal, _ *netem.Proxy) { x.Cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":  func(x *rig.Terminal, _ *netem.Proxy) { x.Cmd.Process.Signal(syscall.SIGHUP) },
		"displaced": func(_ *rig.Terminal, p *netem.Proxy) {
			rig.Open(t, h.QT("attach", "displaced")).Expect("ready")
			p.Set(netem.Config{})
		},
	} {
		link := netem.Config{Delay: 20 * time.Millisecond}
		p := h.Proxy(link)
		x := h.Shell(p.Addr(), "--predict", "always", "-s", name)
		x.Send("echo re''ady; cat\r")
		x.Expect("ready")
		for _, key := range "shown" {
			x.Send(string(key))
			x.Expect(string(key))
		}
		key := drawAlone(x, p, link)
		end(x, p)
		x.Exit()
		<-x.Closed()
		s := screen.New(80, 24, screen.Limits{Lines: 100})
		s.Write([]byte(x.Out.String()))
		for y := range 24 {
			if row := s.Row(y).Text(); strings.Contains(row, key) {
				t.Errorf("%s: a key that was predicted stays: %q", name, row)
			}
		}
	}
}
