//go:build linux || darwin

package enrolled

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// key returns a public key.
func key(t *testing.T, n int) []byte {
	t.Helper()
	seed := binary.BigEndian.AppendUint32(make([]byte, 28), uint32(n))
	public, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed).Public())
	if err != nil {
		t.Fatal(err)
	}
	return public.Marshal()
}

func device(t *testing.T, n, by int) *auth.Enrolled {
	return &auth.Enrolled{Key: key(t, n), Kind: auth.KindDevice, Name: "a phone", By: key(t, by), Made: time.Now().Unix()}
}

func do(t *testing.T, task wire.KeyTask) (*wire.Keys, error) {
	t.Helper()
	answer, err := Do(&task)
	keys, _ := answer.(*wire.Keys)
	return keys, err
}

func add(t *testing.T, dir string, e *auth.Enrolled) (sum [sha256.Size]byte) {
	t.Helper()
	if _, err := do(t, wire.KeyTask{Task: wire.KeysAdd, Dir: dir, Line: e.Line()}); err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(e.Key)
}

// A key is found from when it is added until it, or the key that has enrolled it, is removed.
func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "keys")
	if keys, err := do(t, wire.KeyTask{Task: wire.KeysList, Dir: dir}); err != nil || len(keys.Keys) != 0 {
		t.Errorf("before the first: %v, %v", keys, err)
	}
	mine, other := device(t, 1, 9), device(t, 2, 8)
	sum, otherSum := add(t, dir, mine), add(t, dir, other)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	found, err := Find(dir, sum, false)
	if err != nil || found.Name != mine.Name || string(found.By) != string(mine.By) || found.Used < mine.Made {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := do(t, wire.KeyTask{Task: wire.KeysAdd, Dir: dir, Line: mine.Line()}); err == nil {
		t.Error("a key is enrolled twice")
	}
	keys, err := do(t, wire.KeyTask{Task: wire.KeysList, Dir: dir})
	if err != nil || len(keys.Keys) != 2 || !strings.HasPrefix(keys.Keys[0].By, "SHA256:") {
		t.Errorf("%+v, %v", keys, err)
	}
	by := sha256.Sum256(key(t, 9))
	keys, err = do(t, wire.KeyTask{Task: wire.KeysRemove, Dir: dir, Sum: by[:]})
	if err != nil || len(keys.Keys) != 1 || string(keys.Keys[0].Sum) != string(sum[:]) {
		t.Errorf("%+v, %v", keys, err)
	}
	if _, err := Find(dir, sum, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key whose issuer is removed: %v", err)
	}
	if keys, err := do(t, wire.KeyTask{Task: wire.KeysRemove, Dir: dir}); err != nil || len(keys.Keys) != 1 {
		t.Errorf("all: %+v, %v", keys, err)
	}
	if _, err := Find(dir, otherSum, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after all are removed: %v", err)
	}
}

// Of many clients with one link, one gets in; its login lasts.
func TestLinkIsGoodOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	link := device(t, 1, 9)
	link.Kind, link.Expires = auth.KindLink, time.Now().Add(time.Minute).Unix()
	sum := add(t, dir, link)
	var wg sync.WaitGroup
	var mu sync.Mutex
	used := 0
	for range 20 {
		wg.Go(func() {
			if _, err := Do(&wire.KeyTask{Task: wire.KeysUse, Dir: dir, Sum: sum[:]}); err == nil {
				mu.Lock()
				used++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if used != 1 {
		t.Errorf("a link is used %d times", used)
	}
	if _, err := Find(dir, sum, false); err == nil {
		t.Error("a link that was used lets in again")
	}
	if _, err := Find(dir, sum, true); err != nil {
		t.Errorf("the client that has used it: %v", err)
	}
	if _, err := do(t, wire.KeyTask{Task: wire.KeysAdd, Dir: dir, Line: link.Line()}); err == nil {
		t.Error("a link that was used is enrolled again")
	}
	removed, err := do(t, wire.KeyTask{Task: wire.KeysRemove, Dir: dir, Sum: sum[:]})
	if err != nil || len(removed.Keys) != 1 {
		t.Errorf("%+v, %v", removed, err)
	}
	if _, err := Find(dir, sum, true); err == nil {
		t.Error("a link that was revoked keeps its client")
	}
}

// A link is gone after it is revoked, also while a login uses it, and however many files are beside its own.
func TestRemoveWhileUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	link := device(t, 1, 9)
	link.Kind, link.Expires = auth.KindLink, time.Now().Add(time.Hour).Unix()
	for range 300 {
		sum := add(t, dir, link)
		var uses sync.WaitGroup
		uses.Go(func() { Do(&wire.KeyTask{Task: wire.KeysUse, Dir: dir, Sum: sum[:]}) })
		removed, err := do(t, wire.KeyTask{Task: wire.KeysRemove, Dir: dir, Sum: sum[:]})
		uses.Wait()
		if err != nil || len(removed.Keys) != 1 {
			t.Fatalf("%+v, %v", removed, err)
		}
		if _, err := Find(dir, sum, true); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("a link that was revoked keeps its client: %v", err)
		}
	}
	for n := range 2 * maxNames {
		e := device(t, n, 9)
		if err := os.WriteFile(filepath.Join(dir, hex.EncodeToString(e.Key)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 20 {
		sum := add(t, dir, device(t, n, 9))
		removed, err := do(t, wire.KeyTask{Task: wire.KeysRemove, Dir: dir, Sum: sum[:]})
		if err != nil || len(removed.Keys) != 1 {
			t.Errorf("among many files: %+v, %v", removed, err)
		}
	}
}

// Keys end with their time, and a device when it has not logged in for long.
func TestKeysEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	share := &auth.Enrolled{
		Key: key(t, 1), Kind: auth.KindShare, Name: "work", ByKind: "ssh", Made: 1, Expires: time.Now().Unix(),
		Session: strings.Repeat("ab", 16),
	}
	sum := add(t, dir, share)
	for _, check := range []bool{false, true} {
		if _, err := Find(dir, sum, check); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("a share that has expired, checked %v: %v", check, err)
		}
	}
	if _, err := do(t, wire.KeyTask{Task: wire.KeysUse, Dir: dir, Sum: sum[:]}); err == nil {
		t.Error("a share that has expired is used")
	}
	sum = add(t, dir, device(t, 2, 9))
	f := filepath.Join(dir, hex.EncodeToString(sum[:]))
	setUsed := func(ago time.Duration) {
		at := time.Now().Add(-ago)
		if err := os.Chtimes(f, at, at); err != nil {
			t.Fatal(err)
		}
	}
	content := string(device(t, 2, 9).Line())
	content = content[:strings.Index(content, "made@")] + `made@quicterm="1"` + content[strings.Index(content, " ssh-ed25519"):]
	if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	setUsed(89 * 24 * time.Hour)
	if _, err := Find(dir, sum, true); err != nil {
		t.Error(err)
	}
	setUsed(90 * 24 * time.Hour)
	if _, err := Find(dir, sum, true); err == nil || !strings.Contains(err.Error(), "not logged in") {
		t.Errorf("a device that was not used: %v", err)
	}
	if keys, err := do(t, wire.KeyTask{Task: wire.KeysList, Dir: dir}); err != nil || len(keys.Keys) != 0 {
		t.Errorf("keys that have ended are listed: %+v, %v", keys, err)
	}
}

func rewrite(t *testing.T, file, from, to string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(b), from, to, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A file or directory that another account could have made or read, or that says what is not known, lets nobody in.
func TestStrangeFiles(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir, file string) error{
		"read by others":         func(_ *testing.T, _, f string) error { return os.Chmod(f, 0o640) },
		"a directory for others": func(_ *testing.T, dir, _ string) error { return os.Chmod(dir, 0o711) },
		"of another account":     func(_ *testing.T, _, f string) error { return os.Chown(f, 61001, 61001) },
		"a directory of another": func(_ *testing.T, dir, _ string) error { return os.Chown(dir, 61001, 61001) },
		"a link": func(_ *testing.T, _, f string) error {
			return errors.Join(os.Rename(f, f+"x"), os.Symlink(filepath.Base(f)+"x", f))
		},
		"a pipe":                  func(_ *testing.T, _, f string) error { return errors.Join(os.Remove(f), syscall.Mkfifo(f, 0o600)) },
		"a directory":             func(_ *testing.T, _, f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o700)) },
		"huge":                    func(_ *testing.T, _, f string) error { return os.Truncate(f, 1<<40) },
		"empty":                   func(_ *testing.T, _, f string) error { return os.Truncate(f, 0) },
		"an option of sshd":       edit("kind@quicterm", "cert-authority,kind@quicterm"),
		"an option of tomorrow":   edit("kind@quicterm", `x="1",kind@quicterm`),
		"an option twice":         edit("kind@quicterm", `kind@quicterm="device",kind@quicterm`),
		"another kind":            edit(`"device"`, `"root"`),
		"a share without an end":  edit(`"device"`, `"share"`),
		"by nobody":               edit("by@quicterm=", `session@quicterm=`),
		"the key of another name": func(t *testing.T, _, f string) error { return os.WriteFile(f, device(t, 7, 9).Line(), 0o600) },
		"a second line": func(t *testing.T, _, f string) error {
			return os.WriteFile(f, append(device(t, 1, 9).Line(), device(t, 7, 9).Line()...), 0o600)
		},
		"a file of authorized keys": func(t *testing.T, _, f string) error {
			return os.WriteFile(f, ssh.MarshalAuthorizedKey(public(t, 1)), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "of another") && os.Getuid() != 0 && name != "the key of another name" {
				t.Skip("needs root")
			}
			dir := filepath.Join(t.TempDir(), "keys")
			sum := add(t, dir, device(t, 1, 9))
			if err := change(t, dir, filepath.Join(dir, hex.EncodeToString(sum[:]))); err != nil {
				t.Fatal(err)
			}
			for _, check := range []bool{false, true} {
				if e, err := Find(dir, sum, check); err == nil {
					t.Errorf("it lets in: %+v", e)
				}
			}
			if _, err := do(t, wire.KeyTask{Task: wire.KeysUse, Dir: dir, Sum: sum[:]}); err == nil {
				t.Error("it is used")
			}
			keys, err := do(t, wire.KeyTask{Task: wire.KeysList, Dir: dir})
			if err == nil && len(keys.Keys) != 0 {
				t.Errorf("it is listed: %+v", keys)
			}
		})
	}
}

func public(t *testing.T, n int) ssh.PublicKey {
	t.Helper()
	k, err := ssh.ParsePublicKey(key(t, n))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// edit replaces a text in a file.
func edit(from, to string) func(*testing.T, string, string) error {
	return func(t *testing.T, _, file string) error {
		rewrite(t, file, from, to)
		return nil
	}
}

// There are at most so many keys; those that are spent make room, and those that have ended.
func TestManyKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.root.Close()
	for n := range wire.MaxEnrolled {
		e := device(t, n, 9999)
		if err := s.write((&file{sum: sha256.Sum256(e.Key)}).name(), e.Line()); err != nil {
			t.Fatal(err)
		}
	}
	one := device(t, 1000, 9999)
	if _, err := do(t, wire.KeyTask{Task: wire.KeysAdd, Dir: dir, Line: one.Line()}); err == nil {
		t.Fatal("one more key is enrolled")
	}
	f, err := s.find(sha256.Sum256(key(t, 3)))
	if err != nil {
		t.Fatal(err)
	}
	before := f.name()
	f.spent = true
	if err := s.root.Rename(before, f.name()); err != nil {
		t.Fatal(err)
	}
	add(t, dir, one)
	if _, err := s.find(sha256.Sum256(key(t, 3))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the key that was spent: %v", err)
	}
}

// What a process leaves behind that is killed is removed later.
func TestLeftBehind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	add(t, dir, device(t, 1, 9))
	old, young := filepath.Join(dir, temporary+"old"), filepath.Join(dir, temporary+"young")
	for _, f := range []string{old, young} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-2 * temporaryTime)
	if err := os.Chtimes(old, before, before); err != nil {
		t.Fatal(err)
	}
	add(t, dir, device(t, 2, 9))
	_, oldErr := os.Stat(old)
	_, youngErr := os.Stat(young)
	if !errors.Is(oldErr, fs.ErrNotExist) || youngErr != nil {
		t.Errorf("old: %v, young: %v", oldErr, youngErr)
	}
}
