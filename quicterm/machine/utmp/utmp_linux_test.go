package utmp

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	testLogin = Login{Terminal: 37, Process: 4711, Account: "ann", UID: 1001, Client: netip.MustParseAddr("::ffff:192.0.2.7")}
	testTime  = time.Unix(1700000000, 123456789)
)

// The records have the form that the C library of each processor gives them.
func TestLayout(t *testing.T) {
	for processor, want := range map[string]struct {
		size, last int
		times      string // session, seconds and microseconds
	}{
		"amd64": {384, 292, "00000000 00f15365 40e20100"},
		"arm64": {400, 296, "0000000000000000 00f1536500000000 40e2010000000000"},
	} {
		l := layouts[processor]
		times, err := hex.DecodeString(strings.ReplaceAll(want.times, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		text := func(s string, size int) []byte { return append([]byte(s), make([]byte, size-len(s))...) }
		record := slices.Concat([]byte{7, 0, 0, 0, 0x67, 0x12, 0, 0}, text("pts/37", 32), []byte("q11\x00"), text("ann", 32),
			text("192.0.2.7", 256), make([]byte, 4), times, []byte{192, 0, 2, 7})
		if got := l.begin(&testLogin, testTime); !bytes.Equal(got, text(string(record), want.size)) {
			t.Errorf("%s: %d bytes % x", processor, len(got), got)
		}
		record = slices.Concat([]byte{8, 0, 0, 0, 0x67, 0x12, 0, 0}, text("pts/37", 32), []byte("q11\x00"), make([]byte, 32+256+4), times)
		if got := l.end(&testLogin, testTime); !bytes.Equal(got, text(string(record), want.size)) {
			t.Errorf("%s: the end has %d bytes % x", processor, len(got), got)
		}
		second := times[l.word : 2*l.word]
		last := slices.Concat(second, text("pts/37", 32), text("192.0.2.7", 256))
		if got := l.last(&testLogin, testTime); !bytes.Equal(got, last) || len(got) != want.last {
			t.Errorf("%s: lastlog has %d bytes % x", processor, len(got), got)
		}
		// Long texts, and the longest address.
		long := testLogin
		long.Account, long.Client = strings.Repeat("a", 100), netip.MustParseAddr("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff%zone")
		if got := l.begin(&long, testTime); len(got) != want.size || string(got[44:76]) != strings.Repeat("a", 32) ||
			!bytes.HasPrefix(got[76:], []byte("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff\x00")) {
			t.Errorf("%s: % x", processor, got)
		}
	}
	for n, want := range map[uint32]string{0: "q0", 46655: "qzzz", 46656: ""} {
		if got := idOf(n); got != want {
			t.Errorf("the id of terminal %d is %q, want %q", n, got, want)
		}
	}
}

// newFiles makes the files, with what they have.
func newFiles(t *testing.T, utmp []byte) *Files {
	t.Helper()
	if _, ok := layouts[runtime.GOARCH]; !ok {
		t.Skip("the form of the files is not known on this processor")
	}
	dir := t.TempDir()
	f := &Files{filepath.Join(dir, "utmp"), filepath.Join(dir, "wtmp"), filepath.Join(dir, "lastlog")}
	for path, content := range map[string][]byte{f.Utmp: utmp, f.Wtmp: utmp, f.Lastlog: nil} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The records of a login stand between those of others, and its end is recorded once.
func TestLogin(t *testing.T) {
	l := layouts[runtime.GOARCH]
	other := make([]byte, l.size()) // as other programs name it, on the same terminal
	copy(other, l.begin(&testLogin, testTime))
	copy(other[40:], "s/37")
	f := newFiles(t, other)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wantLiving := func(want ...Login) {
		t.Helper()
		if got, err := f.Living(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v live (%v), want %+v", got, err, want)
		}
	}
	wantLiving()
	check(f.Begin(t.Context(), &testLogin, testTime))
	wantLiving(Login{Terminal: 37, Process: 4711})
	begin := l.begin(&testLogin, testTime)
	for _, path := range []string{f.Utmp, f.Wtmp} {
		if got := read(t, path); !bytes.Equal(got, slices.Concat(other, begin)) {
			t.Errorf("%s has % x", path, got)
		}
	}
	if got := read(t, f.Lastlog); !bytes.Equal(got, append(make([]byte, 1001*l.lastSize()), l.last(&testLogin, testTime)...)) {
		t.Errorf("lastlog has %d bytes", len(got))
	}

	// A login that is not there has no end.
	stranger := testLogin
	stranger.Process++
	check(f.End(t.Context(), &stranger, testTime))
	wantLiving(Login{Terminal: 37, Process: 4711})
	end := l.end(&testLogin, testTime)
	for range 2 {
		check(f.End(t.Context(), &Login{Terminal: 37, Process: 4711}, testTime))
		wantLiving()
		if got := read(t, f.Utmp); !bytes.Equal(got, slices.Concat(other, end)) {
			t.Errorf("utmp has % x", got)
		}
		if got := read(t, f.Wtmp); !bytes.Equal(got, slices.Concat(other, begin, end)) {
			t.Errorf("wtmp has % x", got)
		}
	}

	// The next login on the terminal takes its place, and the end of the one before does not come later.
	check(f.Begin(t.Context(), &stranger, testTime))
	check(f.End(t.Context(), &testLogin, testTime))
	wantLiving(Login{Terminal: 37, Process: 4712})
	if got := read(t, f.Utmp); len(got) != 2*l.size() {
		t.Errorf("utmp has %d bytes", len(got))
	}
}

// Files that do not exist are not made, without a utmp the others are written, and what is no file with
// such records is left as it is.
func TestOtherFiles(t *testing.T) {
	f := newFiles(t, nil)
	l := layouts[runtime.GOARCH]
	if err := os.Remove(f.Utmp); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(context.Context, *Login, time.Time) error{f.Begin, f.End} {
		if err := change(t.Context(), &testLogin, testTime); err != nil {
			t.Error(err)
		}
	}
	if got := read(t, f.Wtmp); len(got) != 2*l.size() {
		t.Errorf("wtmp has %d bytes", len(got))
	}
	none := &Files{f.Utmp, f.Utmp + "x", f.Utmp + "y"}
	if err := errors.Join(none.Begin(t.Context(), &testLogin, testTime), none.End(t.Context(), &testLogin, testTime)); err != nil {
		t.Error(err)
	}
	if all, err := none.Living(t.Context()); len(all) > 0 || err != nil {
		t.Errorf("%v live: %v", all, err)
	}
	if names, _ := filepath.Glob(filepath.Dir(f.Utmp) + "/*"); len(names) != 2 {
		t.Errorf("the files are %q", names)
	}

	odd := bytes.Repeat([]byte{1}, l.size()+1)
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, nil, 0o600), unix.Mkfifo(f.Utmp+"fifo", 0o600), os.Symlink(target, f.Utmp+"link"),
		os.WriteFile(f.Utmp+"odd", odd, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"fifo", "link", "odd"} {
		path := f.Utmp + kind
		for _, f := range []*Files{{Utmp: path, Wtmp: f.Wtmp, Lastlog: f.Lastlog}, {f.Utmp, path, f.Lastlog}, {f.Utmp, f.Wtmp, path}} {
			if err := f.Begin(t.Context(), &testLogin, testTime); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a login is recorded in a %s", kind)
			}
		}
	}
	if got := read(t, f.Utmp+"odd"); !bytes.Equal(got, odd) {
		t.Error("a file with other records was changed")
	}
	if got := read(t, target); len(got) > 0 {
		t.Error("a link was followed")
	}
}

// lockAsOther locks a file as another program does that may only read it, until unlock is called.
func lockAsOther(t *testing.T, path string) (unlock func()) {
	t.Helper()
	holder, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { holder.Close() })
	if err := unix.FcntlFlock(holder.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}); err != nil {
		t.Fatal(err)
	}
	return func() { holder.Close() }
}

// A program that has locked the file, as the C library does, is waited for, until the daemon ends.
func TestLock(t *testing.T) {
	f := newFiles(t, nil)
	unlock := lockAsOther(t, f.Utmp)
	done := make(chan error, 1)
	go func() { done <- f.Begin(t.Context(), &testLogin, testTime) }()
	select {
	case err := <-done:
		t.Fatalf("a locked file is written (%v)", err)
	case <-time.After(100 * time.Millisecond):
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := f.End(ctx, &testLogin, testTime); err == nil {
		t.Error("a locked file is written")
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A beginning that is not in utmp is not in wtmp, and an end that is only in utmp is completed, once.
func TestLockedOneByOne(t *testing.T) {
	f, login := newFiles(t, nil), testLogin
	short := func(change func(context.Context, *Login, time.Time) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return change(ctx, &login, testTime)
	}
	wantRecords := func(n int) {
		t.Helper()
		if got, size := len(read(t, f.Wtmp)), layouts[runtime.GOARCH].size(); got != n*size {
			t.Errorf("wtmp has %d bytes, want %d records", got, n)
		}
	}
	unlock := lockAsOther(t, f.Utmp)
	if err := short(f.Begin); err == nil {
		t.Error("a locked utmp is written")
	}
	wantRecords(0)
	unlock()
	if err := f.Begin(t.Context(), &login, testTime); err != nil {
		t.Fatal(err)
	}
	unlock = lockAsOther(t, f.Wtmp)
	if err := short(f.End); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the end in a locked wtmp: %v", err)
	}
	if all, err := f.Living(t.Context()); len(all) > 0 || err != nil {
		t.Errorf("%v live (%v)", all, err)
	}
	unlock()
	if err := f.End(t.Context(), &login, testTime); err != nil {
		t.Fatal(err)
	}
	wantRecords(2)
	if err := f.End(t.Context(), &testLogin, testTime); err != nil {
		t.Fatal(err)
	}
	wantRecords(2)
}

// The programs of the system read the records.
func TestPrograms(t *testing.T) {
	f := newFiles(t, nil)
	login := testLogin
	login.Process = os.Getpid()
	if err := f.Begin(t.Context(), &login, testTime); err != nil {
		t.Fatal(err)
	}
	show := func(want string, args ...string) {
		t.Helper()
		version, _ := exec.Command(args[0], "--version").CombinedOutput()
		if !regexp.MustCompile(`util-linux|GNU coreutils`).Match(version) {
			t.Logf("%s is missing, or prints in a way of its own", args[0])
			return
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
		out, err := cmd.CombinedOutput()
		got := strings.Join(strings.Fields(string(out)), " ")
		if err != nil || !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q prints %q (%v), want %q", args, out, err, want)
		}
	}
	show("ann pts/37 Nov 14 22:13 (192.0.2.7)", "who", f.Utmp)
	show("ann pts/37 192.0.2.7 Tue Nov 14 22:13", "last", "-f", f.Wtmp)
	if err := f.End(t.Context(), &login, testTime.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	show("ann pts/37 192.0.2.7 Tue Nov 14 22:13 - 23:13 (01:00)", "last", "-f", f.Wtmp)
	show("", "who", f.Utmp)
}
