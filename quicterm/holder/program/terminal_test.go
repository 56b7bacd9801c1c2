//go:build linux || darwin

package program

import (
	"os/exec"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// The context is that of a program which a shell's child becomes long after it has come to the foreground.
func TestContextOfSlowProgram(t *testing.T) {
	program := exec.Command("sh", "-c", "read x; exec sleep 1000")
	in, err := program.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer program.Wait()
	defer program.Process.Kill()
	shell, err := processName(program.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	f := foreground{group: 1, context: wire.ContextOf(shell)}
	f.update(now, program.Process.Pid)
	in.Write([]byte("\n"))
	for until := now.Add(20 * time.Second); f.context != wire.ContextOf([]byte("sleep")); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the context is not that of the program")
		}
		f.update(now.Add(2*execTime), program.Process.Pid)
	}
}
