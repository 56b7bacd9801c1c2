package program

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Only a pipe into which much is written at once becomes larger.
func TestGrowingPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	size := func() (n int) {
		control(r, func(fd int) (err error) {
			n, err = unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
			return err
		})
		return n
	}
	before := size()
	if before < 64<<10 {
		t.Skipf("this user has too many pipes: a new one holds %d bytes", before)
	}
	output := growing(r)
	buf := make([]byte, 64<<10)
	for _, step := range []struct {
		bytes, times, want int
	}{
		{1000, 1, before},
		{2049, 16, pipeSize}, // each write takes a page
	} {
		for range step.times {
			if _, err := w.Write(make([]byte, step.bytes)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := output.Read(buf); n != step.bytes*step.times || err != nil {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		if got := size(); got != step.want {
			t.Errorf("after %d writes of %d bytes: the pipe holds %d, want %d", step.times, step.bytes, got, step.want)
		}
	}
}
