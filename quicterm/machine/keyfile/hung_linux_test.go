package keyfile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/machine/account"
)

// inMountNamespace runs the test in a process of its own, whose mounts nobody else sees. It
// reports whether this is that process.
func inMountNamespace(t *testing.T) bool {
	t.Helper()
	if err := rig.CanHang(); err != nil {
		t.Skip(err)
	}
	const inside = "KEYFILE_TEST_NAMESPACE"
	if os.Getenv(inside) != "" {
		for fd := 3; fd < 64; fd++ { // what we inherited: qtd closes it in the child
			syscall.CloseOnExec(fd)
		}
		return true
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	return false
}

// hang gives an account a home that does not answer.
func hang(t *testing.T, a *account.Account) *rig.HungFS {
	t.Helper()
	a.Home = t.TempDir()
	if err := os.Chmod(filepath.Dir(a.Home), 0o755); err != nil { // the account reaches it
		t.Fatal(err)
	}
	fs := rig.NewHungFS(t)
	fs.Mount(a.Home)
	return fs
}

// await waits until a condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for start := time.Now(); !condition(); time.Sleep(time.Millisecond) {
		if time.Since(start) > rig.Patience {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// children returns the process ids of the children of this process.
func children(t *testing.T) (pids []int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tasks {
		b, _ := os.ReadFile(file) // its thread may have ended
		for pid := range strings.FieldsSeq(string(b)) {
			if n, err := strconv.Atoi(pid); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// Homes that do not answer take neither more than one child for all clients of an account,
// nor the places of other accounts, and no client waits after the end.
func TestHungHomes(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	const accounts, clients = maxPlaces + 2, 50
	r := newReader(t)
	r.timeout = time.Hour // a slow machine does not give up either
	blob, line := key(1)
	var wg sync.WaitGroup
	var failed atomic.Int32
	login := func(a *account.Account) {
		wg.Go(func() {
			if _, err := r.Authorize(t.Context(), a, &Sources{Files: []string{filepath.Join(a.Home, "keys")}}, ask(clientAddr, blob)...); !errors.Is(err, errClosed) {
				t.Errorf("the keys of %s: %v, want %v", a.Name, err, errClosed)
			}
			failed.Add(1)
		})
	}
	var first *account.Account
	for i := range accounts {
		a := &account.Account{Name: fmt.Sprintf("hung%d", i), UID: 61100 + uint32(i), GID: 65534}
		hang(t, a)
		login(a)
		if i == 0 {
			first = a
		}
	}
	readers := func() (n int) { // other children tell the groups of accounts
		for _, pid := range children(t) {
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.Contains(string(command), Command) {
				n++
			}
		}
		return n
	}
	await(t, "all accounts have a child", func() bool { return readers() == accounts })
	for range clients {
		login(first)
	}
	waiting := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, q := range r.queues {
			n += len(q.waiting)
		}
		return n
	}
	await(t, "the other clients wait", func() bool { return waiting() == clients })
	if n := readers(); n != accounts {
		t.Errorf("%d children of %d accounts", n, accounts)
	}
	for range 5 {
		me := current(t)
		file := put(t, me, "keys", 0o600, line)
		if got := verdicts(r.Authorize(t.Context(), me, &Sources{Files: []string{file}}, ask(clientAddr, blob)...)); got != "allowed" {
			t.Fatalf("the account whose home answers: %s", got)
		}
	}
	if n := failed.Load(); n != 0 {
		t.Errorf("%d clients have an answer", n)
	}
	r.Close()
	wg.Wait()
	await(t, "the children end", func() bool { return len(children(t)) == 0 })
}

// A child that cannot be killed counts for its account until it ends, and the account gets
// maxChildren at most. Later its keys are read again.
func TestUnkillableChildren(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	r := newReader(t)
	r.timeout = 100 * time.Millisecond
	a := &account.Account{Name: "hung", UID: 61001, GID: 65534}
	fs := hang(t, a)
	trapped := make(chan struct{}, 8)
	fs.Trap(func() { trapped <- struct{}{} })
	blob, line := key(1)
	authorize := func() string {
		return verdicts(r.Authorize(t.Context(), a, &Sources{Files: []string{filepath.Join(a.Home, "keys")}}, ask(clientAddr, blob)...))
	}
	for range maxChildren {
		// A child that is killed before it touches the file system ends.
		await(t, "a child is trapped", func() bool {
			if got := authorize(); got != "error: "+errHung.Error() {
				t.Fatalf("got %q", got)
			}
			r.timeout = min(2*r.timeout, 5*time.Second)
			return len(trapped) > 0
		})
		<-trapped
	}
	await(t, "the other children end", func() bool { return len(children(t)) == maxChildren })
	stuck := children(t)
	for range 60 {
		if got := authorize(); got != "error: "+errHung.Error() {
			t.Fatalf("got %q", got)
		}
	}
	if now := children(t); !slices.Equal(now, stuck) {
		t.Errorf("children %v, want still %v", now, stuck)
	}
	fs.Answer()
	await(t, "the children end", func() bool { return len(children(t)) == 0 })
	home(t, a)
	put(t, a, "keys", 0o600, line)
	r.timeout = readTimeout
	await(t, "the account is counted right", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.accounts[a.UID].children == 0
	})
	if got := authorize(); got != "allowed" {
		t.Errorf("after the end of the children: %s", got)
	}
}

// Children of many accounts that cannot be killed keep no place. If they are too many, only
// accounts whose files were read before have another child.
func TestUnkillableChildrenOfManyAccounts(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	r := newReader(t)
	r.timeout, r.places, r.maxSlow, r.maxStuck = time.Hour, make(chan struct{}, 1), 1, 3
	blob, line := key(1)
	authorize := func(a *account.Account) string {
		return verdicts(r.Authorize(t.Context(), a, &Sources{Files: []string{filepath.Join(a.Home, "keys")}}, ask(clientAddr, blob)...))
	}
	slow := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.slow
	}
	me := current(t)
	put(t, me, "keys", 0o600, line)
	if got := authorize(me); got != "allowed" {
		t.Fatalf("the account whose home answers: %s", got)
	}
	var trapped atomic.Int32
	var all []*rig.HungFS
	stuck := func(i int) {
		a := &account.Account{Name: fmt.Sprintf("hung%d", i), UID: 61100 + uint32(i), GID: 65534}
		fs := hang(t, a)
		fs.Trap(func() { trapped.Add(1) })
		all = append(all, fs)
		if i == 0 {
			go authorize(a) // it may be slow
		}
		for int(trapped.Load()) <= i {
			if i > 0 {
				if got := authorize(a); got != "error: "+errHung.Error() {
					t.Fatalf("account %d: %s", i, got)
				}
			}
			// A child that is killed before it touches the file system ends.
			await(t, "a child is trapped or has ended", func() bool { return int(trapped.Load()) > i || i > 0 && slow() == i })
		}
		await(t, "the child leaves its place", func() bool { return slow() == i+1 })
	}
	for i := range r.maxStuck {
		stuck(i)
	}
	other := &account.Account{Name: "other", UID: 61200, GID: 65534}
	home(t, other)
	put(t, other, "keys", 0o600, line)
	if got := authorize(other); got != "error: "+errHung.Error() {
		t.Errorf("an account whose files were never read: %s", got)
	}
	await(t, "the account whose home answers is read", func() bool { return authorize(me) == "allowed" })
	await(t, "the others have no more children", func() bool { return len(children(t)) == r.maxStuck })
	for _, fs := range all {
		fs.Answer()
	}
	await(t, "the children end", func() bool { return slow() == 0 })
	await(t, "the other account is read", func() bool { return authorize(other) == "allowed" })
}

// A process of the account can neither read the memory of its child nor trace it.
func TestChildIsHidden(t *testing.T) {
	if !inMountNamespace(t) {
		return
	}
	r := newReader(t)
	r.timeout = time.Hour
	a := &account.Account{Name: "hung", UID: 61001, GID: 65534}
	hang(t, a)
	blob, _ := key(1)
	go r.Authorize(t.Context(), a, &Sources{Files: []string{filepath.Join(a.Home, "keys")}}, ask(clientAddr, blob)...)
	as := func(uid string, pid int) bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return strings.Contains(string(status), "\nUid:\t"+strings.Repeat(uid+"\t", 3)+uid+"\n")
	}
	await(t, "the child runs as the account", func() bool {
		pids := children(t)
		return len(pids) == 1 && as("61001", pids[0])
	})
	child := children(t)[0]
	credential := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.UID, Gid: a.GID}}
	sleep := exec.Command("sleep", "60")
	sleep.SysProcAttr = credential
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer sleep.Wait()
	defer sleep.Process.Kill()
	// Opening the memory needs the right to trace (ptrace(2)).
	open := func(pid int) error {
		cmd := exec.Command("sh", "-c", fmt.Sprintf("exec 3<>/proc/%d/mem && exec 4</proc/%d/environ && ls /proc/%d/fd", pid, pid, pid))
		cmd.SysProcAttr = credential
		return cmd.Run()
	}
	await(t, "the account traces its other process", func() bool { return open(sleep.Process.Pid) == nil })
	if open(child) == nil {
		t.Error("the account can trace the child")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", child))
	if err != nil || !strings.Contains(string(status), "\nGroups:\t65534 \n") || !strings.Contains(string(status), "\nCapEff:\t0000000000000000\n") || !strings.Contains(string(status), "\nCapPrm:\t0000000000000000\n") {
		t.Errorf("the child has other rights than the account: %v\n%s", err, status)
	}
	// The Go runtime opens files of its control group.
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", child))
	for _, file := range files {
		if to, _ := os.Readlink(file); !strings.HasPrefix(to, "pipe:") && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/fs/cgroup/") && to != os.DevNull {
			t.Errorf("the child has %s, which is %s", file, to)
		}
	}
	if environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child)); err != nil || len(environment) != 0 {
		t.Errorf("the environment of the child: %q, %v; want nothing", environment, err)
	}
	r.Close()
}
