//go:build linux

// Package program starts the remote terminals that are measured: quicterm, and those that
// it is compared with.
package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/topology"
)

// A Program is a remote terminal.
type Program interface {
	Name() string

	// Missing returns what must be installed before the program can run, or "".
	Missing() string

	// Serve starts the program's server. Cleanups of the measurement end it.
	Serve(t *measure.T, on topology.Topology) Server
}

// A Server is a program whose server runs.
type Server interface {
	// Command returns a client on a machine, not started: a session that runs a command
	// of sh on a terminal. All clients' commands are made before the first is started.
	Command(m *topology.Machine, shell string) *exec.Cmd

	// Processes returns those on the server's side, for all sessions together, without
	// what the sessions run. It is called while all sessions are open.
	Processes(t *measure.T) []int
}

// A Piper is a Server whose clients can run a command without a terminal.
type Piper interface {
	Pipe(m *topology.Machine, shell string) *exec.Cmd
}

// A Resender is a Server that knows how many bytes clients have sent again, and in all.
type Resender interface {
	Resent(t *measure.T, clients []int) (resent, sent int)
}

// A Carrier is a Server that knows the transports that carry the sessions of some clients now, or
// "" if none does.
type Carrier interface {
	Transports(t *measure.T, clients []int) []string
}

// A Rememberer is a Server whose clients remember how to reach it. Remembered reports whether one
// has kept that, or none is to.
type Rememberer interface {
	Remembered() bool
}

// all are the programs that are compared.
var all = []Program{Quicterm{Predicts: true}, SSH{}, Mosh, et, Tssh, tsshKCP}

// Names returns the names of all programs.
func Names() (names []string) {
	for _, p := range all {
		names = append(names, p.Name())
	}
	return names
}

// versionCommands print the versions of programs.
var versionCommands = map[string][]string{
	"ssh":      {"ssh", "-V"},
	"mosh":     {"mosh", "--version"},
	"et":       {"et", "--version"},
	"tssh":     {"tssh", "-V"},
	"tssh-kcp": {"tssh", "-V"},
}

// Installed returns those of the named programs (of all, if none is named) that are
// installed, and writes their versions, and what the others lack.
func Installed(w io.Writer, names []string) ([]Program, error) {
	for _, n := range names {
		if !slices.Contains(Names(), n) {
			return nil, fmt.Errorf("no program is called %q", n)
		}
	}
	var present []Program
	for _, p := range all {
		if len(names) > 0 && !slices.Contains(names, p.Name()) {
			continue
		}
		if why := p.Missing(); why != "" {
			fmt.Fprintf(w, "%s is left out: %s.\n", p.Name(), why)
			continue
		}
		present = append(present, p)
		if command := versionCommands[p.Name()]; command != nil {
			fmt.Fprintf(w, "%s is %s.\n", p.Name(), version(command))
		}
	}
	if len(present) == 0 {
		return nil, fmt.Errorf("none of the programs is installed")
	}
	return present, nil
}

// version returns the first line that a command prints. A command that hangs is killed.
func version(command []string) string {
	const limit = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, _ := cmd.CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return "of an unknown version"
	}
	return line
}

// servers returns those of some processes on the server's side that are not what sessions
// run: they have no terminal, or that of this process.
func servers(t *measure.T, pids []int) []int {
	own := terminal(os.Getpid())
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		tty := terminal(pid)
		return tty != noTerminal && tty != own
	})
	if len(pids) == 0 {
		t.Fatal("no server runs")
	}
	return pids
}

// noTerminal is what terminal returns if there is none.
const noTerminal = "0"

// terminal returns the number of a process's controlling terminal.
func terminal(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return noTerminal
	}
	const tty = 4 // after the name, which may contain anything: proc(5)
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))[tty]
}

// underSh returns a command of any shell that runs a command of sh.
func underSh(shell string) string { return "exec sh -c " + shellQuote(shell) }

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// notInstalled says which of some commands cannot be found, or "".
func notInstalled(commands ...string) string {
	for _, c := range commands {
		if _, err := exec.LookPath(c); err != nil {
			return fmt.Sprintf("%s is not installed", c)
		}
	}
	return ""
}
