//go:build linux

package work

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/bench/program"
)

// Tool is a program of others at work through a client: copying, building, talking. Both are commands of sh, with the
// scripts of [program.Tooler] in their PATH, and these variables:
//
//	HOST   the server
//	DIR    a folder that both see
//	BENCH  this program
//
// It yields "whole", 1 if the client's command has exit status 0, and "took", seconds.
type Tool struct {
	ownSessions
	Server string        // runs beside the daemon until SIGINT at the end, and listens on its port 8000; or is empty
	Client string        // runs on the first client's machine
	Limit  time.Duration // after which it counts as hung
}

func (w Tool) Run(j *Job) []Figure {
	server, ok := j.Server.(program.Tooler)
	if !ok {
		j.T.Fatal("nothing of others runs through it")
	}
	dir, err := os.MkdirTemp("", "qt-tool")
	if err != nil {
		j.T.Fatal(err)
	}
	j.T.Cleanup(func() { os.RemoveAll(dir) })
	m := j.Clients[0].Machine
	server.Tools(j.T, m, dir)
	env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DIR="+dir, "HOST="+m.Server, "BENCH="+Executable(j.T))
	command := func(ctx context.Context, end syscall.Signal, shell string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "sh", "-ec", shell)
		cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, end) }
		return cmd
	}
	if w.Server != "" {
		ctx, cancel := context.WithCancel(context.Background())
		cmd := j.Host.In.In(command(ctx, syscall.SIGINT, w.Server))
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Start(); err != nil {
			j.T.Fatal(err)
		}
		j.T.Cleanup(func() {
			cancel()
			cmd.Wait()
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		})
		ctx, cancelWait := context.WithTimeout(ctx, time.Minute)
		defer cancelWait()
		if err := j.Host.In.In(command(ctx, syscall.SIGKILL, Listens(8000))).Run(); err != nil {
			j.T.Fatalf("the tool's server does not listen: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.Limit)
	defer cancel()
	cmd := m.Namespace.In(command(ctx, syscall.SIGKILL, w.Client))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	j.Begin()
	began := time.Now()
	err = cmd.Run()
	took := time.Since(began)
	j.End()
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left in the background
	whole := one("whole", "", 1)
	if err != nil {
		whole.Values[0] = 0
		whole.Note = err.Error() + ": " + lastLine(log.String())
		if ctx.Err() != nil {
			whole.Note = "hangs: " + lastLine(log.String())
		}
	} else if took < slices.Max(append(j.Ends, 0)) {
		j.T.Fatalf("it ended after %v, before all had happened", took)
	}
	return []Figure{whole, one("took", "s", took.Seconds())}
}

// Listens is a command of sh that waits until something listens on a port.
func Listens(port int) string {
	return fmt.Sprintf("until ss -Htln 'sport = :%d' | grep -q .; do sleep 0.1; done\n", port)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
