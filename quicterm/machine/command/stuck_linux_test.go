package command_test

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/machine/command"
)

// A program that its file system keeps from ending, even when it is killed, does not keep its caller.
func TestStuckProgram(t *testing.T) {
	if err := rig.CanHang(); err != nil {
		t.Skip(err)
	}
	fs, dir, late := rig.NewHungFS(t), t.TempDir(), errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	mounted, result := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: nobody else sees the mounts of this thread
		err := syscall.Unshare(syscall.CLONE_NEWNS)
		if err == nil {
			err = syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
		}
		if err == nil {
			fs.Mount(dir)
		}
		if mounted <- err; err == nil {
			_, _, err = command.Run(ctx, (*exec.Cmd).Start, "/bin/cat", dir+"/file")
			result <- err
		}
	}()
	if err := <-mounted; err != nil {
		t.Skip(err)
	}
	trapped := make(chan struct{}, 10)
	fs.Trap(func() { trapped <- struct{}{} })
	<-trapped
	cancel(late)
	select {
	case err := <-result:
		if !errors.Is(err, late) {
			t.Errorf("%v, want %v", err, late)
		}
		ended := make(chan struct{})
		command.WhenEnded(err, func() { close(ended) })
		select {
		case <-ended:
			t.Error("the program has ended")
		default:
		}
		fs.Answer()
		<-ended
	case <-time.After(rig.Patience):
		t.Error("the caller waits for a program that does not end")
	}
}
