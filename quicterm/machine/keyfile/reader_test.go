//go:build linux || darwin

package keyfile

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/account"
)

func TestAuthorize(t *testing.T) {
	r, a := newReader(t), current(t)
	blob1, line1 := key(1)
	blob2, line2 := key(2)
	blob3, _ := key(3)
	first := put(t, a, "first", 0o600, "no-pty "+line1+"from=\"10.0.0.0/8\" "+line2)
	second := put(t, a, "second", 0o600, line1+`command="a<b>&'\"c\""  `+line2)
	open := put(t, a, "open", 0o666, line1)
	for _, test := range []struct {
		name  string
		files []string
		from  netip.Addr
		keys  [][]byte
		want  string
	}{
		{"in order", []string{first, second}, clientAddr, [][]byte{blob2, blob1, blob3, blob1}, `<a<b>&'"c">; no pty; key is not in authorized_keys; no pty`},
		{"another address", []string{first, second}, netip.MustParseAddr("10.1.1.1"), [][]byte{blob2}, "allowed"},
		{"one file only", []string{first}, clientAddr, [][]byte{blob2}, "option from: does not allow 192.0.2.7"},
		{"a missing file", []string{first, filepath.Join(a.Home, "none")}, clientAddr, [][]byte{blob1, blob3}, "no pty; key is not in authorized_keys: lstat " + filepath.Join(a.Home, "none") + ": no such file or directory"},
		{"others may write", []string{open}, clientAddr, [][]byte{blob1}, "key is not in authorized_keys: not all files were read: " + open + ": others may write to it: chmod go-w"},
		{"no key", []string{first}, clientAddr, [][]byte{nil, []byte("x")}, "key is not in authorized_keys; key is not in authorized_keys"},
		{"no file", nil, clientAddr, [][]byte{blob1}, "key is not in authorized_keys"},
		{"no keys", []string{first}, clientAddr, nil, ""},
	} {
		if got := verdicts(r.Authorize(t.Context(), a, &Sources{Files: test.files}, ask(test.from, test.keys...)...)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// A key that was added is allowed at once, and one that was removed or restricted is not
// allowed any more.
func TestAuthorizeSeesChanges(t *testing.T) {
	r, a := newReader(t), current(t)
	blob, line := key(1)
	for i, test := range []struct{ content, want string }{
		{"", "key is not in authorized_keys"},
		{line, "allowed"},
		{"no-pty " + line, "no pty"},
		{"#" + line, "key is not in authorized_keys"},
		{line, "allowed"},
	} {
		file := put(t, a, "keys", 0o600, test.content)
		if got := verdicts(r.Authorize(t.Context(), a, &Sources{Files: []string{file}}, ask(clientAddr, blob)...)); got != test.want {
			t.Errorf("change %d: got %q, want %q", i, got, test.want)
		}
	}
}

// A read is for all clients that wait for it: each gets its own answers.
func TestAuthorizeManyClients(t *testing.T) {
	r, a := newReader(t), current(t)
	blob1, line1 := key(1)
	blob2, _ := key(2)
	file := put(t, a, "keys", 0o600, "from=\"10.0.0.0/8\" "+line1)
	var wg sync.WaitGroup
	for i := range 40 {
		from := netip.AddrFrom4([4]byte{10 + byte(i%2), 0, 0, byte(i)})
		want := "key is not in authorized_keys; allowed"
		if i%2 == 1 {
			want = "key is not in authorized_keys; option from: does not allow " + from.String()
		}
		wg.Go(func() {
			if got := verdicts(r.Authorize(t.Context(), a, &Sources{Files: []string{file}}, ask(from, blob2, blob1)...)); got != want {
				t.Errorf("client %d: got %q, want %q", i, got, want)
			}
		})
	}
	wg.Wait()
	r.Close()
	if len(r.queues) != 0 {
		t.Errorf("%d queues are left", len(r.queues))
	}
}

func TestAuthorizeEnds(t *testing.T) {
	r, a := newReader(t), current(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	blob, _ := key(1)
	if _, err := r.Authorize(ctx, a, &Sources{Files: []string{"/none"}}, ask(clientAddr, blob)...); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	r.Close()
	if _, err := r.Authorize(t.Context(), a, &Sources{Files: []string{"/none"}}, ask(clientAddr, blob)...); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v, want %v", err, errClosed)
	}
}

// A program that does not call Main in a child starts no children there.
func TestChildStartsNoChild(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"qtd", Command}
	r, a := newReader(t), current(t)
	blob, line := key(1)
	file := put(t, a, "keys", 0o600, line)
	if got := verdicts(r.Authorize(t.Context(), a, &Sources{Files: []string{file}}, ask(clientAddr, blob)...)); !strings.Contains(got, "does not call keyfile.Main") {
		t.Errorf("got %q", got)
	}
}

// A panic fails one read, and leaves nothing occupied.
func TestPanicFailsOneRead(t *testing.T) {
	r := &Reader{places: make(chan struct{}, 1)} // without a context
	r.places <- struct{}{}
	c := &child{reader: r, account: &state{children: 1}, placed: true}
	if _, err := c.read(source{}, []*client{{}}); err == nil || !strings.Contains(err.Error(), "panic: ") || !strings.Contains(err.Error(), "keyfile.(*child).read") {
		t.Errorf("got %v, want the panic and where it was", err)
	}
	if len(r.places) != 0 || c.account.children != 0 {
		t.Errorf("%d places and %d children are occupied", len(r.places), c.account.children)
	}
}

// another returns another account than that of this process, with a home of its own that
// it can reach. Only root can act as it.
func another(t *testing.T) *account.Account {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can act as another account")
	}
	a := &account.Account{Name: "another", UID: 61001, GID: 65534}
	home(t, a)
	// Every directory above must let the account through.
	if err := os.Chmod(filepath.Dir(a.Home), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(a.Home); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode()&1 == 0 {
			t.Skipf("no other account can reach temporary files, because of %s (%v)", dir, err)
		}
	}
	return a
}

// Root reads a file with the rights of the account only.
func TestReadAsAnother(t *testing.T) {
	r, a := newReader(t), another(t)
	blob, line := key(1)
	root := &account.Account{UID: 0, GID: 0, Home: a.Home}
	secret := put(t, root, "secret", 0o600, line)
	put(t, root, "dir/public", 0o644, line)
	put(t, root, "dir", 0o700)
	link := filepath.Join(a.Home, "link")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(a.Home, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, a, "fifo", 0o600)
	third := &account.Account{UID: a.UID + 1, GID: a.GID, Home: a.Home}
	for file, want := range map[string]string{
		put(t, a, "own", 0o600, line):       "allowed",
		put(t, root, "public", 0o644, line): "allowed",
		put(t, &account.Account{UID: 0, GID: a.GID, Home: a.Home}, "group", 0o640, line): "allowed",
		secret: "permission denied",
		put(t, root, "of_roots_group", 0o640, line): "permission denied",
		filepath.Join(a.Home, "dir/public"):         "permission denied",
		link:                                        "permission denied",
		put(t, third, "of_a_third", 0o644, line):    "belongs to another account",
		fifo:                                        "not a regular file",
		put(t, a, "larger", 0o600, strings.Repeat("x", maxFile+1)): "larger than",
	} {
		got := verdicts(r.Authorize(t.Context(), a, &Sources{Files: []string{file}}, ask(clientAddr, blob)...))
		if got != want && (want == "allowed" || !strings.Contains(got, want) || !strings.HasPrefix(got, "key is not")) {
			t.Errorf("%s: got %q, want %q", filepath.Base(file), got, want)
		}
	}
}

// Clients that log in, however many, keep nobody from finding out that a client has lost its access.
func TestCheckBesideLogins(t *testing.T) {
	r, a := newReader(t), current(t)
	for range maxPlaces { // nothing is read for now
		r.places <- struct{}{}
	}
	blob, _ := key(1)
	results := make(chan error, maxWaiting+1)
	authorize := func(check bool) {
		_, err := r.Authorize(t.Context(), a, &Sources{Files: []string{"/none"}, Check: check}, ask(clientAddr, blob)...)
		results <- err
	}
	for range maxWaiting + 1 {
		go authorize(false)
	}
	if err := <-results; !errors.Is(err, errWaiting) {
		t.Fatalf("too many clients wait: %v, want %v", err, errWaiting)
	}
	go authorize(true)
	queues := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.queues)
	}
	for len(results) == 0 && queues() < 2 {
		time.Sleep(time.Millisecond)
	}
	for range maxPlaces {
		<-r.places
	}
	for range maxWaiting + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
