package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pkg/sftp"

	"github.com/quicterm/quicterm/quicterm/files"
)

// served returns the files of this account, over pipes.
func served(t *testing.T) *Files {
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		files.Serve(requests, answers, false)
		answers.Close()
	}()
	f := &Files{out: files.NewWriter(in), ended: make(chan struct{}), waiting: make(map[uint32]chan []byte), last: ownID}
	reader := files.NewReader(out, func(_ byte, id uint32) bool { return id >= ownID }, f.take)
	var err error
	f.Client, err = sftp.NewClientPipe(reader, pipe{f.out, func() { in.Close() }}, sftp.MaxPacketUnchecked(packetBytes))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		<-done
		f.Client.Close()
	})
	return f
}

// Add takes the place of nothing: neither of a file, nor of a link or a directory, nor of what another one adds.
func TestAdd(t *testing.T) {
	f, dir := served(t), t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "a.tar.gz"), []byte("old"), 0o600),
		os.Symlink("elsewhere", filepath.Join(dir, "a.tar-1.gz")),
		os.Mkdir(filepath.Join(dir, "a.tar-2.gz"), 0o700),
		os.WriteFile(filepath.Join(dir, "a.tar-3.gz.qt.part"), []byte("old"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	const adds = 8
	content := func(i int) string { return strings.Repeat(fmt.Sprint(i), 300_000+i) }
	var wrote atomic.Int64
	var work sync.WaitGroup
	names, errs := make([]string, adds), make([]error, adds)
	for i := range adds {
		work.Go(func() {
			c := content(i)
			names[i], errs[i] = f.Add(dir, "a.tar.gz", strings.NewReader(c), int64(len(c)), func(n int64) { wrote.Add(n) })
		})
	}
	work.Wait()
	total := 0
	for i, name := range names {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if string(got) != content(i) || errors.Join(errs[i], err) != nil {
			t.Errorf("%s has %d bytes, want %d: %v", name, len(got), len(content(i)), errors.Join(errs[i], err))
		}
		total += len(content(i))
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) != adds || slices.Contains(names, "a.tar.gz") || wrote.Load() != int64(total) {
		t.Errorf("added %q, and wrote %d bytes of %d", names, wrote.Load(), total)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a.tar.gz")); string(got) != "old" {
		t.Errorf("a file that was there has %q, %v", got, err)
	}
	if all := listed(t, dir); len(all) != 4+adds {
		t.Errorf("there are %q", all)
	}
}

// A failing is a content that cannot be read from a place on.
type failing struct {
	io.ReaderAt
	from int64
	err  error
}

func (f failing) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.from {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, offset)
}

// What is not whole is not left, and no name leads elsewhere.
func TestAddFails(t *testing.T) {
	f, dir := served(t), t.TempDir()
	lost := errors.New("lost")
	const size = 5 * packetBytes
	content := strings.NewReader(strings.Repeat("x", size))
	if _, err := f.Add(dir, "a", failing{content, size / 2, lost}, size, func(int64) {}); !errors.Is(err, lost) {
		t.Errorf("%v, want %v", err, lost)
	}
	if _, err := f.Add(dir, "a", content, size+1, func(int64) {}); err != errShorter {
		t.Errorf("%v, want %v", err, errShorter)
	}
	for _, name := range []string{"", ".", "..", "../a", "/a", "a\x00", "a.qt.part", strings.Repeat("a", 256)} {
		if name, err := f.Add(dir, name, strings.NewReader("x"), 1, func(int64) {}); err == nil {
			t.Errorf("added %q", name)
		}
	}
	if _, err := f.Add(dir+"/none", "a", strings.NewReader("x"), 1, func(int64) {}); err == nil {
		t.Error("added to a directory that does not exist")
	}
	if all := listed(t, dir); len(all) != 0 {
		t.Errorf("there are %q", all)
	}
}
