package rig

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

// A HungFS is a file system (FUSE) that never answers: whoever touches it waits until it is
// killed.
type HungFS struct {
	// Answer makes all accesses fail, those that wait as well.
	Answer func()

	t        T
	fuse     *os.File
	answered chan struct{} // closed by Answer
	traps    sync.WaitGroup
}

// CanHang reports why there can be no HungFS here, or nil.
func CanHang() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("mounting a file system needs root")
	}
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// NewHungFS makes a file system that lasts as long as the test. It is not mounted yet, and
// is mounted once.
func NewHungFS(t T) *HungFS {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &HungFS{t: t, fuse: os.NewFile(uintptr(fd), "fuse"), answered: make(chan struct{})}
	h.Answer = sync.OnceFunc(func() {
		close(h.answered)
		h.traps.Wait()
		h.fuse.Close()
	})
	t.Cleanup(h.Answer)
	return h
}

// options are those of mount(2), for the descriptor of the file system. Every account may
// use it.
func options(fd int) string {
	return fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)
}

// Mount mounts the file system on a directory, in the mount namespace of this process.
func (h *HungFS) Mount(dir string) {
	h.t.Helper()
	if err := unix.Mount("hung", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options(int(h.fuse.Fd()))); err != nil {
		h.t.Fatalf("mount a file system: %v", err)
	}
	h.t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
}

// In returns a command that runs in a mount namespace of its own, where the file system is
// mounted on a directory.
func (h *HungFS) In(dir string, cmd *exec.Cmd) *exec.Cmd {
	mount := fmt.Sprintf(`mount -i -t fuse -o %s hung "$0" && exec "$@" 3<&-`, options(3))
	in := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", mount, dir, cmd.Path},
		cmd.Args[1:]...)...)
	in.ExtraFiles = []*os.File{h.fuse}
	return in
}

// Trap makes the processes unkillable that touch the mounted file system from now on: a
// request that the file system has taken is not given up. It calls trapped for each.
func (h *HungFS) Trap(trapped func()) {
	h.t.Helper()
	const headerSize, opcodeInit, opcodeInterrupt = 40, 26, 36
	request := make([]byte, 64<<10)
	fd := int(h.fuse.Fd())
	if n, err := unix.Read(fd, request); err != nil || n < headerSize ||
		binary.NativeEndian.Uint32(request[4:]) != opcodeInit {
		h.t.Fatalf("the kernel does not begin with INIT: %v", err)
	}
	answer := make([]byte, 16+64) // fuse_out_header, fuse_init_out
	binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
	copy(answer[8:], request[8:16])                     // the number of the request
	binary.NativeEndian.PutUint32(answer[16:], 7)       // version 7.31
	binary.NativeEndian.PutUint32(answer[20:], 31)      //
	binary.NativeEndian.PutUint32(answer[16+20:], 4096) // max_write
	if _, err := unix.Write(fd, answer); err != nil {
		h.t.Fatalf("answer INIT: %v", err)
	}
	h.traps.Go(func() {
		for {
			select {
			case <-h.answered: // a read that waits would keep the file system alive
				return
			default:
			}
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(poll, 10); n == 0 || err == unix.EINTR {
				continue
			}
			if _, err := unix.Read(fd, request); err != nil {
				continue // the request was given up
			}
			if binary.NativeEndian.Uint32(request[4:]) != opcodeInterrupt {
				trapped()
			}
		}
	})
}
