package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/pkg/sftp"

	"github.com/quicterm/quicterm/quicterm/files"
)

// A fake is the tree of a server that says what it likes. What it does not have of a tree, no test needs.
type fake struct {
	tree
	dirs    map[string][]fs.FileInfo
	content map[string]string
	links   map[string]string
}

// entry describes a file.
func entry(name string, mode fs.FileMode, size int) fs.FileInfo {
	f, err := fstest.MapFS{"x": {Data: make([]byte, size), Mode: mode}}.Stat("x")
	if err != nil {
		panic(err)
	}
	return named{f, name, mode}
}

type named struct {
	fs.FileInfo
	name string
	mode fs.FileMode
}

func (n named) Name() string      { return n.name }
func (n named) Mode() fs.FileMode { return n.mode }
func (n named) IsDir() bool       { return n.mode.IsDir() }

func (f *fake) readDir(name string, each func([]fs.FileInfo) error) error {
	for batch := range slices.Chunk(f.dirs[name], 2) {
		if err := each(batch); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) get(name string) ([]byte, error) {
	content, ok := f.content[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(content), nil
}

func (f *fake) open(name string) (source, error) {
	content, err := f.get(name)
	return unclosed{bytes.NewReader(content)}, err
}

// An unclosed is a source that nothing has opened.
type unclosed struct{ io.ReaderAt }

func (unclosed) Close() error { return nil }

func (f *fake) label(name string) string { return "from:" + name }

func (f *fake) readLink(name string) (string, error) { return f.links[name], nil }

// copyFrom copies the directory . of a fake into a directory, and returns the lines of what is not copied.
func copyFrom(t *testing.T, f tree, dir string, o Options) (failed []string, p *Progress, err error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var mu sync.Mutex
	o.Recursive = true
	o.Failed = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, line)
	}
	p = new(Progress)
	c := newCopier(ctx, stop, &local{dir: dir, root: root}, o, p)
	c.add(job{from: f, name: ".", to: ".", info: entry(".", fs.ModeDir|0o755, 0)})
	err = c.run()
	slices.Sort(failed)
	return failed, p, err
}

// listed returns all that is below a directory.
func listed(t *testing.T, dir string) (names []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if name != dir {
			names = append(names, name[len(dir)+1:])
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// No server makes a client write outside of the directory that the user has named, or through a link.
func TestHostileNames(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	longName := strings.Repeat("n", 256)
	f := &fake{content: map[string]string{}, links: map[string]string{"new": outside, "twice": outside}}
	f.dirs = map[string][]fs.FileInfo{
		".": {
			entry("..", 0o644, 1), entry("", 0o644, 1), entry("a/b", 0o644, 1), entry("../up", 0o644, 1), entry("/abs", 0o644, 1),
			entry("nul\x00", 0o644, 1), entry(longName, 0o644, 1), entry("x.qt.part", 0o644, 1), entry("pipe", fs.ModeNamedPipe|0o644, 0),
			entry("old", fs.ModeDir|0o755, 0), entry("new", fs.ModeSymlink|0o777, 0),
			entry("twice", fs.ModeSymlink|0o777, 0), entry("twice", fs.ModeDir|0o755, 0),
			entry("esc\x1b]0;x\a", 0o644, 1), entry("good", 0o644, 4),
		},
		"old": {entry("through", 0o644, 1)}, "twice": {entry("in", 0o644, 2)},
	}
	f.content["good"], f.content["twice/in"], f.content["old/through"] = "good", "in", "x"
	failed, p, err := copyFrom(t, f, dir, Options{})
	if !errors.Is(err, ErrIncomplete) {
		t.Errorf("the copy ends with %v", err)
	}
	const noName = "no file here can have this name"
	want := []string{
		"from:./: " + noName, "from:./..: " + noName, "from:./../up: " + noName, "from:.//abs: " + noName,
		"from:./a/b: " + noName, "from:./nul?: " + noName, "from:./" + longName + ": " + noName,
		"from:./x.qt.part: it is a part of a file that is not whole", "from:esc?]0;x?: file does not exist",
		dir + "/old: there is a link, which is not followed", "from:pipe: not a regular file",
		dir + "/twice: file exists",
	}
	slices.Sort(want)
	if !slices.Equal(failed, want) {
		t.Errorf("failed are\n%s\nwant\n%s", strings.Join(failed, "\n"), strings.Join(want, "\n"))
	}
	if got := listed(t, outside); got != nil {
		t.Errorf("outside there is %q", got)
	}
	if got, want := listed(t, dir), []string{"good", "new", "old", "twice", "twice/in"}; !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
	if p.Files.Load() != 3 {
		t.Errorf("%d files are done", p.Files.Load())
	}
}

// A file that vanishes or shrinks after it was listed is told, and nothing of it has its name.
func TestVanishedFiles(t *testing.T) {
	large := files.MaxPut + 1
	f := &fake{
		dirs: map[string][]fs.FileInfo{".": {
			entry("gone", 0o644, 5), entry("large", 0o644, large), entry("short", 0o644, large), entry("grown", 0o600, 1),
			entry("kept", 0o644, 5),
		}},
		content: map[string]string{
			"large": strings.Repeat("l", large), "short": "s", "grown": strings.Repeat("g", 3*files.MaxPut), "kept": "kept!",
		},
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "short"), []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	failed, _, err := copyFrom(t, f, dir, Options{Preserve: true})
	want := []string{"from:gone: file does not exist", "from:short: it became shorter while it was read"}
	if !errors.Is(err, ErrIncomplete) || !slices.Equal(failed, want) {
		t.Errorf("%v, failed are %q, want %q", err, failed, want)
	}
	f.content["short"] = "before"
	for _, name := range []string{"large", "short", "grown", "kept"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != f.content[name] {
			t.Errorf("%s has %d bytes, %v", name, len(got), err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "grown")); err != nil || info.Mode() != 0o600 {
		t.Errorf("grown: %v, %v", info, err)
	}
}

// A full is a tree whose disk is full.
type full struct{ tree }

func (f full) put(string, files.Attributes, []byte) error {
	return &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
}

func (f full) label(name string) string { return "to:" + name }
func (f full) close()                   {}

// A full disk ends a copy: all other files would fail too.
func TestFullDisk(t *testing.T) {
	f := &fake{dirs: map[string][]fs.FileInfo{}, content: map[string]string{}}
	for i := range 2000 {
		name := fmt.Sprint("f", i) // long ones would be refused for that, each with a line
		f.dirs["."] = append(f.dirs["."], entry(name, 0o644, 1))
		f.content[name] = "x"
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	lines := 0
	c := newCopier(ctx, stop, full{}, Options{Recursive: true, Failed: func(string) { lines++ }}, new(Progress))
	c.add(job{from: f, name: ".", to: ".", info: entry(".", fs.ModeDir|0o755, 0)})
	if err := c.run(); err == nil || !strings.HasPrefix(err.Error(), "to:f") ||
		!strings.HasSuffix(err.Error(), ": no space left on device") || lines > 0 {
		t.Errorf("the copy ends with %v, after %d lines", err, lines)
	}
}

// A link that is there is replaced by one with another target, and a file is too.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{os.Symlink("before", filepath.Join(dir, "a")), os.WriteFile(filepath.Join(dir, "b"), nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f := &fake{links: map[string]string{"a": "to a", "b": "../to b", "c": "to c"}, dirs: map[string][]fs.FileInfo{".": {
		entry("a", fs.ModeSymlink, 0), entry("b", fs.ModeSymlink, 0), entry("c", fs.ModeSymlink, 0),
	}}}
	if failed, _, err := copyFrom(t, f, dir, Options{}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	for name, want := range f.links {
		if got, err := os.Readlink(filepath.Join(dir, name)); got != want {
			t.Errorf("%s leads to %q, %v; want %q", name, got, err, want)
		}
	}
	if got := listed(t, dir); len(got) != 3 {
		t.Errorf("there is %q", got)
	}
}

// A context that ends ends a copy, whose part stays.
func TestCopyStops(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("stopped")
	f := endless{&fake{dirs: map[string][]fs.FileInfo{".": {entry("large", 0o644, 1<<30)}}}, func() { stop(why) }}
	c := newCopier(ctx, stop, &local{dir: dir, root: root}, Options{Recursive: true, Failed: func(line string) { t.Error(line) }}, new(Progress))
	c.add(job{from: f, name: ".", to: ".", info: entry(".", fs.ModeDir|0o755, 0)})
	if err := c.run(); !errors.Is(err, why) {
		t.Errorf("the copy ends with %v", err)
	}
	if got, want := listed(t, dir), []string{"large.qt.part"}; !slices.Equal(got, want) {
		t.Errorf("there is %q, want %q", got, want)
	}
}

// An endless is a tree with a file that does not end, and that calls read as soon as it is read.
type endless struct {
	*fake
	read func()
}

func (e endless) open(string) (source, error) { return e, nil }

func (e endless) ReadAt(p []byte, _ int64) (int, error) {
	e.read()
	return len(p), nil
}

func (e endless) Close() error { return nil }

// An error of the server is told in its own words, without what would control a terminal.
func TestReasons(t *testing.T) {
	f := &Files{ended: make(chan struct{})}
	for _, test := range []struct {
		err  error
		want string
	}{
		{&files.Error{Code: 4, Text: "write /a/b: no space left on device"}, "no space left on device"},
		{&files.Error{Code: 4, Text: "x\x1b]0;title\a"}, "x?]0;title?"},
		{&files.Error{Code: 4}, "error 4 of the server"},
		{fs.ErrPermission, "permission denied"},
		{io.EOF, "EOF"},
	} {
		if got := f.reason(test.err); got.Error() != test.want {
			t.Errorf("%v is told as %q, want %q", test.err, got, test.want)
		}
	}
	f.err = errors.New("gone")
	close(f.ended)
	var ended *EndedError
	for _, err := range []error{sftp.ErrSSHFxConnectionLost, errors.New("failed to send packet"), &EndedError{f.err}} {
		if got := f.reason(err); !errors.As(got, &ended) || got.Error() != "gone" {
			t.Errorf("%v is told as %v", err, got)
		}
	}
}

// A sized is a fake with files that are hashed. It remembers where each was read first in the file.
type sized struct {
	*fake
	first *sync.Map // *atomic.Int64, by name
}

func (s sized) open(name string) (source, error) {
	first := new(atomic.Int64)
	first.Store(math.MaxInt64)
	s.first.Store(name, first)
	from, err := s.fake.open(name)
	return noted{from, first}, err
}

// A noted source remembers where it was read first in the file.
type noted struct {
	source
	first *atomic.Int64
}

func (n noted) ReadAt(p []byte, offset int64) (int, error) {
	for before := n.first.Load(); offset < before && !n.first.CompareAndSwap(before, offset); before = n.first.Load() {
	}
	return n.source.ReadAt(p, offset)
}

// from returns where a file was read first, or -1.
func (s sized) from(name string) int64 {
	first, ok := s.first.Load(name)
	if !ok {
		return -1
	}
	return first.(*atomic.Int64).Load()
}

func (s sized) hash(name string, offset, size uint64) (files.Hash, error) {
	return files.HashRange(strings.NewReader(s.content[name]), offset, size)
}

// A part is continued behind what it has of the file, whatever else it has, also where the file has zeros. Nothing is taken
// from another file or a link.
func TestResume(t *testing.T) {
	const whole = 3*files.MaxHash + 5
	const data = 2*files.MaxHash + 1000
	content := strings.Repeat("0123456789abcde", data/15+1)[:data] + strings.Repeat("\x00", whole-data-1<<20)
	content += strings.Repeat("x", 4) + strings.Repeat("\x00", 1<<20-4)
	other := t.TempDir() + "/other"
	dir := t.TempDir()
	s := sized{&fake{dirs: map[string][]fs.FileInfo{}, content: map[string]string{}}, new(sync.Map)}
	parts := map[string]struct {
		part string
		from int64
	}{
		"none":    {"", 0},
		"begun":   {content[:100], 0},
		"two":     {content[:2*files.MaxHash+7], 2 * files.MaxHash},
		"hole":    {content[:files.MaxHash] + strings.Repeat("\x00", files.MaxHash) + content[2*files.MaxHash:], files.MaxHash},
		"another": {strings.Repeat("x", whole), 0},
		"partly":  {content[:data] + strings.Repeat("x", 1<<20+1), 2 * files.MaxHash},
		"all":     {content, 3 * files.MaxHash},
		"longer":  {content + "and more", 3 * files.MaxHash},
	}
	for name, p := range parts {
		s.dirs["."] = append(s.dirs["."], long{entry(name, 0o644, 0), whole})
		s.content[name] = content
		if p.part != "" {
			if err := os.WriteFile(filepath.Join(dir, files.PartOf(name)), []byte(p.part), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.dirs["."] = append(s.dirs["."], long{entry("link", 0o644, 0), whole})
	s.content["link"] = content
	for _, err := range []error{os.WriteFile(other, []byte(content), 0o644), os.Symlink(other, filepath.Join(dir, files.PartOf("link")))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	failed, _, err := copyFrom(t, s, dir, Options{Resume: true})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	for name, p := range parts {
		if from := s.from(name); from != p.from {
			t.Errorf("%s is continued at %d, want %d", name, from, p.from)
		}
	}
	for name := range s.content {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
			t.Errorf("%s has %d bytes, %v", name, len(got), err)
		}
	}
	if got := listed(t, dir); len(got) != len(s.content) {
		t.Errorf("there is %q", got)
	}
	if s.from("link") != 0 {
		t.Error("what a link leads to counts as a part")
	}
}

// A long is a file of a size.
type long struct {
	fs.FileInfo
	size int64
}

func (l long) Size() int64 { return l.size }

// A directory is where it is with a slash behind it as without.
func TestIntoDirectory(t *testing.T) {
	from := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(from, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"", "/", "/.", "//"} {
		dir := t.TempDir()
		if err := Copy(t.Context(), []Location{{Path: from}}, Location{Path: dir + end}, Options{}, new(Progress)); err != nil {
			t.Errorf("into %s: %v", dir+end, err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "f")); string(got) != "x" {
			t.Errorf("into %s: the file has %q, %v", dir+end, got, err)
		}
		if err := Copy(t.Context(), []Location{{Path: from}}, Location{Path: dir + "/none/"}, Options{}, new(Progress)); err == nil {
			t.Errorf("copied into a directory that does not exist")
		}
	}
}

// A device keeps its name, also if a link leads to it.
func TestOntoDevice(t *testing.T) {
	from, dir := filepath.Join(t.TempDir(), "f"), t.TempDir()
	device := filepath.Join(dir, "f")
	if err := errors.Join(os.WriteFile(from, []byte("x"), 0o600), os.Symlink(os.DevNull, device)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{device, dir} {
		failed := ""
		o := Options{Failed: func(line string) { failed = line }}
		err := Copy(t.Context(), []Location{{Path: from}}, Location{Path: to}, o, new(Progress))
		if !errors.Is(err, ErrIncomplete) || failed != device+": it is neither a file nor a directory" {
			t.Errorf("onto %s: %v, %s", to, err, failed)
		}
	}
	if got, err := os.Readlink(device); got != os.DevNull {
		t.Errorf("the link leads to %q, %v", got, err)
	}
}

// A directory is not copied into itself, under whatever name.
func TestIntoItself(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(dir+"/a/b", 0o755), os.WriteFile(dir+"/a/f", nil, 0o600), os.Symlink("a", dir+"/link"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, to := range []string{"/a", "/a/b", "/a/b/new", "/link/b", "/link/new"} {
		failed := ""
		o := Options{Recursive: true, Failed: func(line string) { failed = line }}
		err := Copy(t.Context(), []Location{{Path: dir + "/a"}}, Location{Path: dir + to}, o, new(Progress))
		if !errors.Is(err, ErrIncomplete) || !strings.HasSuffix(failed, "it cannot be copied into itself") {
			t.Errorf("into %s: %v, %s", to, err, failed)
		}
	}
	if got := listed(t, dir); len(got) != 4 {
		t.Errorf("there is %q", got)
	}
}

// A large file is copied as well if its owner may not write it. A part has no permission in the end that the file has not.
func TestModesOfLarge(t *testing.T) {
	content := strings.Repeat("x", files.MaxPut+1)
	for name, mode := range map[string]fs.FileMode{"read-only": 0o444, "private": 0o600, "secret": 0o400} {
		from, dir := filepath.Join(t.TempDir(), name), t.TempDir()
		part := filepath.Join(dir, files.PartOf(name))
		if err := errors.Join(os.WriteFile(from, []byte(content), mode), os.WriteFile(part, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		for _, resume := range []bool{true, false} {
			o := Options{Resume: resume, Failed: func(line string) { t.Error(line) }}
			if err := Copy(t.Context(), []Location{{Path: from}}, Location{Path: dir}, o, new(Progress)); err != nil {
				t.Fatal(name, err)
			}
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode() != mode || info.Size() != int64(len(content)) {
				t.Errorf("%s is %v, %v", name, info, err)
			}
		}
	}
}

// A contested is a directory in which another copy begins with a part when this one has written it.
type contested struct{ *local }

func (c contested) write(name string, content io.ReaderAt, offset, limit int64, wrote func(int64)) (int64, error) {
	size, err := c.local.write(name, content, offset, limit, wrote)
	return size, errors.Join(err, os.Remove(c.path(name)), os.WriteFile(c.path(name), []byte("begun"), 0o600))
}

// A copy gives no name to a part that another one has not finished.
func TestTwoCopies(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	const size = files.MaxPut + 1
	f := &fake{content: map[string]string{"f": strings.Repeat("x", size)}}
	failed := ""
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	o := Options{Failed: func(line string) { failed = line }}
	c := newCopier(ctx, stop, contested{&local{dir: dir, root: root}}, o, new(Progress))
	c.add(job{from: f, name: "f", to: "f", info: entry("f", 0o600, size)})
	if err := c.run(); !errors.Is(err, ErrIncomplete) || !strings.HasSuffix(failed, "does another copy write it?") {
		t.Errorf("%v, %s", err, failed)
	}
	if got := listed(t, dir); !slices.Equal(got, []string{files.PartOf("f")}) {
		t.Errorf("there is %q", got)
	}
}
