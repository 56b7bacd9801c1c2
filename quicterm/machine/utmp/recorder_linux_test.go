package utmp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	_ "github.com/quicterm/quicterm/bench/bubble"
)

// A recording is a Recorder with files of its own, until its daemon ends.
type recording struct {
	*Recorder
	t    *testing.T
	life context.Context
	stop func()
	work sync.WaitGroup
}

func newRecording(t *testing.T, files *Files) *recording {
	r := &recording{t: t, Recorder: &Recorder{
		Files: files, Within: func(write func() error) error { return write() }, Warn: func(string, ...any) {},
	}}
	r.life, r.stop = context.WithCancel(context.Background())
	t.Cleanup(func() { r.stop(); r.work.Wait() })
	return r
}

// record records a login at a terminal, in a goroutine.
func (r *recording) record(l Login, at started) {
	l.Process, l.Terminal = at.Process, at.Terminal
	r.work.Go(func() { r.Record(r.life, &l) })
}

// A started is a program on a terminal.
type started struct {
	Process  int
	Terminal uint32
}

// wantRecords waits until so many logins live, and so many records are in wtmp.
func (r *recording) wantRecords(living, records int) {
	r.t.Helper()
	size := map[string]int{"amd64": 384, "arm64": 400}[runtime.GOARCH]
	if size == 0 {
		r.t.Skip("logins are not recorded on this processor")
	}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		all, err := r.Files.Living(r.t.Context())
		info, statErr := os.Stat(r.Files.Wtmp)
		if err = errors.Join(err, statErr); err != nil {
			r.t.Fatal(err)
		}
		if len(all) == living && info.Size() == int64(records*size) {
			return
		}
		if time.Since(start) > 20*time.Second {
			r.t.Fatalf("%v live, and wtmp has %d bytes; want %d and %d records", all, info.Size(), living, records)
		}
	}
}

// onNewTerminal starts a program on a terminal, which lives until end is called.
func onNewTerminal(t *testing.T) (program started, end func()) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	cmd := exec.Command("/bin/cat")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() { cmd.Process.Kill(); cmd.Wait() }
	t.Cleanup(end)
	return started{cmd.Process.Pid, n}, end
}

// Logins are recorded until their programs end, also over a restart of the daemon. An account gets no
// record of a terminal that is not its own, and none that lasts for a process that is not on it.
func TestLoginRecords(t *testing.T) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Skipf("the end of a login cannot be awaited: %v", err)
	}
	unix.Close(fd)
	dir := t.TempDir()
	files := &Files{Utmp: filepath.Join(dir, "utmp"), Wtmp: filepath.Join(dir, "wtmp"), Lastlog: filepath.Join(dir, "lastlog")}
	for _, path := range []string{files.Utmp, files.Wtmp} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRecording(t, files)
	own := Login{Account: "ann", UID: uint32(os.Geteuid()), Client: netip.MustParseAddr("192.0.2.7")}
	one, endOne := onNewTerminal(t)
	two, endTwo := onNewTerminal(t)
	r.record(own, one)
	r.record(own, two)
	r.wantRecords(2, 2)
	endOne()
	r.wantRecords(1, 3)

	// Another account names the terminal.
	other := own
	other.Account, other.UID = "other", own.UID+1
	r.record(other, two)
	// A process that is not on the terminal.
	three, _ := onNewTerminal(t)
	three.Process = os.Getpid()
	r.record(own, three)
	r.wantRecords(1, 5)

	// The daemon ends, and the next one follows what lives.
	r.stop()
	r.work.Wait()
	r.wantRecords(1, 5)
	endTwo()
	next := newRecording(t, files)
	living, err := files.Living(t.Context())
	if err != nil || len(living) != 1 {
		t.Fatalf("%v live, %v", living, err)
	}
	next.Follow(next.life, &living[0])
	next.wantRecords(0, 6)

	// A process whose end cannot be awaited.
	four, _ := onNewTerminal(t)
	four.Process = 1 << 31
	next.record(own, four)
	next.work.Wait()
	next.wantRecords(0, 6)
}

// The end of a login is recorded when a program has unlocked the file that it had locked for minutes.
func TestLockedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		files := &Files{Utmp: filepath.Join(dir, "utmp"), Wtmp: filepath.Join(dir, "wtmp"), Lastlog: filepath.Join(dir, "lastlog")}
		for _, path := range []string{files.Utmp, files.Wtmp} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := newRecording(t, files)
		l := &Login{Terminal: 7, Process: 1, Account: "ann"}
		if err := files.Begin(t.Context(), l, time.Now()); err != nil {
			t.Fatal(err)
		}
		holder, err := os.Open(files.Utmp)
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close()
		if err := unix.FcntlFlock(holder.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Minute, func() { holder.Close() })
		r.follow(t.Context(), l, nil)
		r.wantRecords(0, 2)
	})
}
