package monitor

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/machine/utmp"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A recorder is a Sessions that records logins in files of its own.
type recorder struct {
	*Sessions
	t *testing.T
}

func newRecorder(t *testing.T, files *utmp.Files, setting string) *recorder {
	settings := configs.DefaultServer()
	settings.LoginRecords = setting
	s, err := newSessions(nil, func() *configs.Server { return settings }, slog.New(slog.DiscardHandler), panics.New())
	if err != nil {
		t.Fatal(err)
	}
	s.loginFiles = files
	t.Cleanup(s.finish)
	return &recorder{s, t}
}

// wantRecords waits until so many logins live, and so many records are in wtmp.
func (r *recorder) wantRecords(living, records int) {
	r.t.Helper()
	size := map[string]int{"amd64": 384, "arm64": 400}[runtime.GOARCH]
	if size == 0 {
		r.t.Skip("logins are not recorded on this processor")
	}
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		all, err := r.loginFiles.Living(r.t.Context())
		info, statErr := os.Stat(r.loginFiles.Wtmp)
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
func onNewTerminal(t *testing.T) (started wire.Started, end func()) {
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
	return wire.Started{Process: uint32(cmd.Process.Pid), Terminal: n}, end
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
	files := &utmp.Files{Utmp: filepath.Join(dir, "utmp"), Wtmp: filepath.Join(dir, "wtmp"), Lastlog: filepath.Join(dir, "lastlog")}
	for _, path := range []string{files.Utmp, files.Wtmp} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRecorder(t, files, "on")
	own := &account.Account{Name: "ann", UID: uint32(os.Geteuid())}
	client := privsep.Path{Client: netip.MustParseAddrPort("192.0.2.7:1")}
	one, endOne := onNewTerminal(t)
	two, endTwo := onNewTerminal(t)
	r.recordLogin(own, one, client)
	r.recordLogin(own, two, client)
	r.wantRecords(2, 2)
	endOne()
	r.wantRecords(1, 3)

	// Another account names the terminal, and a program that has none.
	other := &account.Account{Name: "other", UID: own.UID + 1}
	r.recordLogin(other, two, client)
	r.recordLogin(own, wire.Started{}, client)
	// A process that is not on the terminal.
	three, _ := onNewTerminal(t)
	three.Process = uint32(os.Getpid())
	r.recordLogin(own, three, client)
	r.wantRecords(1, 5)

	// The daemon ends, and the next one follows what lives.
	r.stop()
	r.work.Wait()
	r.wantRecords(1, 5)
	endTwo()
	next := newRecorder(t, files, "on")
	next.work.Go(func() { next.followLogins(next.life) })
	next.wantRecords(0, 6)

	off := newRecorder(t, files, "off")
	four, _ := onNewTerminal(t)
	off.recordLogin(own, four, client)
	off.work.Wait()
	off.wantRecords(0, 6)

	// A process whose end cannot be awaited.
	odd := newRecorder(t, files, "on")
	four.Process = 1 << 31
	odd.recordLogin(own, four, client)
	odd.work.Wait()
	odd.wantRecords(0, 6)
}

// The end of a login is recorded when a program has unlocked the file that it had locked for minutes.
func TestLockedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		files := &utmp.Files{Utmp: filepath.Join(dir, "utmp"), Wtmp: filepath.Join(dir, "wtmp"), Lastlog: filepath.Join(dir, "lastlog")}
		for _, path := range []string{files.Utmp, files.Wtmp} {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := newRecorder(t, files, "on")
		l := &utmp.Login{Terminal: 7, Process: 1, Account: "ann"}
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
		r.followLogin(l, nil)
		r.wantRecords(0, 2)
	})
}
