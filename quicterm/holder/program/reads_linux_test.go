package program

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// onTerminal runs a program, whose output is read and forgotten. The channel is closed when that has ended.
func onTerminal(t *testing.T, argv ...string) (*Process, <-chan struct{}) {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skip(err)
	}
	p, err := Start(&wire.Launch{
		PTY: true, Path: path, Argv: argv, Dir: t.TempDir(), Size: wire.Size{Cols: 80, Rows: 24},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TERM=xterm", "HOME=" + t.TempDir()},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 4096)
		for {
			if _, err := p.Stdout().Read(b); err != nil {
				return
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Wait()
	}()
	t.Cleanup(func() {
		p.Hangup(9)
		<-ended
		p.Close()
		<-done
	})
	return p, done
}

// await waits until a program has read its input and waits for more, or does not.
func (p *Process) await(t *testing.T, why string, reads bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !p.Taken() || p.Reads(time.Now(), selfTime) != reads; {
		if time.Now().After(until) {
			t.Fatalf("%s: taken %v, reads %v", why, p.Taken(), !reads)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stays checks that what was awaited holds for a while.
func (p *Process) stays(t *testing.T, why string, reads bool) {
	t.Helper()
	for range 20 {
		if p.Reads(time.Now(), selfTime) != reads {
			t.Fatalf("%s: reads %v", why, !reads)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *Process) typed(s string) { p.Stdin().Write([]byte(s)) }

// A shell waits for input at its prompt, and the programs that it starts do or do not.
func TestReadsOfShell(t *testing.T) {
	p, _ := onTerminal(t, "bash", "--norc", "--noprofile", "-i")
	p.await(t, "the prompt", true)
	p.stays(t, "the prompt", true)
	for _, test := range []struct {
		line  string
		reads bool
		end   string
	}{
		{"sleep 1000\n", false, "\x03"},
		{"cat\n", true, "\x04"},
		{"read -t 1000 x\n", true, "\n"},
		{"read -s x\n", true, "\n"},
		{"while :; do :; done\n", false, "\x03"},
		{"sleep 1000 | sleep 1000\n", false, "\x03"},
		{"sleep 1000 | cat\n", false, "\x03"},
		{"sleep 1000 | cat /dev/tty\n", true, "\x03"},
		{"sh -c 'sleep 0.3; cat; :'\n", true, "\x04"},
	} {
		p.typed(test.line)
		p.await(t, test.line, test.reads)
		p.stays(t, test.line, test.reads)
		p.typed(test.end)
		p.await(t, "the prompt after "+test.line, true)
	}
}

// Programs wait in different system calls.
func TestReadsOfPrograms(t *testing.T) {
	const node = `process.stdin.setRawMode(true); process.stdin.on("data", d => {})`
	for name, argv := range map[string][]string{
		"python": {"python3", "-q"},
		"poll":   {"python3", "-c", "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()"},
		"epoll":  {"python3", "-c", "import select; p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()"},
		"select": {"python3", "-c", "import select; select.select([0], [], [], 1000)"},
		"thread": {"python3", "-c", "import threading, time; threading.Thread(target=input).start(); time.sleep(1000)"},
		"vim":    {"vim", "-u", "NONE"},
		"less":   {"less", "/etc/passwd"},
		"node":   {"node", "-e", node},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := onTerminal(t, argv...)
			p.await(t, strings.Join(argv, " "), true)
			p.stays(t, strings.Join(argv, " "), true)
		})
	}
	for name, argv := range map[string][]string{
		"sleep":  {"python3", "-c", "import time; time.sleep(1000)"},
		"accept": {"python3", "-c", "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()"},
		"pipe":   {"python3", "-c", "import os; r, w = os.pipe(); os.read(r, 1)"},
		"write":  {"python3", "-c", "import select; select.select([], [], [0], 1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := onTerminal(t, argv...)
			for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
				if p.Reads(time.Now(), selfTime) {
					t.Fatal("it waits for input")
				}
			}
		})
	}
}

// Input is taken when the program has read it, and a line that has no end is not in the queue. Looking delays no end.
func TestTaken(t *testing.T) {
	p, over := onTerminal(t, "sh", "-c", "sleep 0.5; head -n 1 >/dev/null; stty raw -echo; sleep 0.5; head -c 3")
	p.typed("a line")
	if !p.Taken() {
		t.Error("a line without end is in the queue")
	}
	p.typed("\n")
	if p.Taken() {
		t.Error("a line is taken that nobody reads")
	}
	p.await(t, "the second program", false)
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if flags, _, _ := p.Modes(time.Now()); flags&wire.Canonical == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the terminal is not raw")
		}
	}
	p.typed("ab")
	if p.Taken() {
		t.Error("keys are taken that nobody reads")
	}
	p.await(t, "the third program", true)
	p.typed("c")
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		p.Taken()
		select {
		case <-over:
			return
		default:
		}
		if time.Now().After(until) {
			t.Fatal("the output does not end with the program")
		}
	}
}

// The foreground is named by its first process, or by another one when that has ended.
func TestForeground(t *testing.T) {
	p, _ := onTerminal(t, "bash", "--norc", "--noprofile", "-i")
	p.typed("printf '#!/bin/sh\\nread x; :' > '(a) b'; chmod +x '(a) b'\n")
	for _, test := range []struct{ line, name string }{
		{"", "bash"},
		{"sleep 1000\n", "sleep"},
		{"true | tail -f /dev/null\n", "tail"},
		{"./'(a) b'\n", "(a) b"},
	} {
		p.await(t, "the prompt before "+test.line, true)
		began := time.Now().Add(-10 * time.Second)
		p.typed(test.line)
		for until := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			name, started := p.Foreground()
			if name == test.name && started.After(began) && started.Before(time.Now().Add(time.Second)) {
				break
			}
			if time.Now().After(until) {
				t.Fatalf("%q: %q since %v, want %q", test.line, name, started, test.name)
			}
		}
		if test.line != "" {
			p.typed("\x03")
		}
	}
}
