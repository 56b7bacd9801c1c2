package files

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/pkg/sftp"

	"github.com/quicterm/quicterm/quicterm/files"
)

// serve returns the files that serve serves.
func serve(t *testing.T, serve func(net.Conn) error) *Files {
	t.Helper()
	near, far := net.Pipe()
	f := &Files{
		out: files.NewWriter(near), end: func() { near.Close() }, ended: make(chan struct{}),
		waiting: make(map[uint32]chan []byte), last: ownID,
	}
	go func() {
		serve(far)
		f.err = io.EOF
		close(f.ended)
		far.Close()
	}()
	answers := files.NewReader(near, func(_ byte, id uint32) bool { return id >= ownID }, f.take)
	var err error
	if f.Client, err = sftp.NewClientPipe(answers, pipe{f.out, f.end}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// What is pasted and offered is in the home directory, wherever relative paths start.
func TestHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no server runs there")
	}
	home, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	for name, c := range map[string]struct {
		start string
		serve func(net.Conn) error
	}{
		"elsewhere": {elsewhere, func(c net.Conn) error { return files.Serve(c, c, false) }},
		"older": {home, func(c net.Conn) error {
			s, err := sftp.NewServer(c)
			if err == nil {
				err = s.Serve()
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(c.start)
			f := serve(t, c.serve)
			r, err := f.home(files.OfferDir)
			if want := filepath.Join(home, files.OfferDir); err != nil || r.dir != want {
				t.Errorf("%v, %v, want %s", r, err, want)
			}
			if name == "older" {
				return
			}
			const pasted = 20 // some of them within a millisecond
			for range pasted {
				name, err := f.Paste(".png", []byte("picture"), func(int64) {})
				if err != nil || !regexp.MustCompile(pastes).MatchString(filepath.Base(name)) {
					t.Errorf("pasted is %s, %v", name, err)
				}
			}
			if there, err := os.ReadDir(filepath.Join(home, pasteDir)); len(there) != pasted {
				t.Errorf("%d files of %d, %v", len(there), pasted, err)
			}
		})
	}
	if left, err := os.ReadDir(elsewhere); len(left) > 0 {
		t.Errorf("elsewhere there is %v, %v", left, err)
	}
}

// The server learns that a file is saved when the client has kept it. A program that stops waiting does not remove it.
func TestGetOffer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no server runs there")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, files.OfferDir)
	link := filepath.Join(dir, files.Offer(7))
	file := filepath.Join(home, "file")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, []byte("content"), 0o600)); err != nil {
		t.Fatal(err)
	}
	f := serve(t, func(c net.Conn) error { return files.Serve(c, c, false) })
	failed := errors.New("no room")
	for name, c := range map[string]struct {
		size int64
		keep func() error
		want error
		left string
	}{
		"kept":         {7, func() error { return nil }, nil, files.OfferSaved},
		"not kept":     {7, func() error { return failed }, failed, files.OfferFailed},
		"nobody waits": {7, func() error { return os.Remove(link + files.OfferSaving) }, nil, ""},
		"has grown":    {6, nil, errSize, files.OfferFailed},
		"has shrunk":   {8, nil, errSize, files.OfferFailed},
	} {
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		err := f.GetOffer(7, c.size, &got, c.keep)
		if !errors.Is(err, c.want) || err == nil && got.String() != "content" {
			t.Errorf("%s: %v, %q", name, err, got.String())
		}
		left, _ := filepath.Glob(link + "*")
		if c.left == "" && len(left) > 0 || c.left != "" && (len(left) != 1 || left[0] != link+c.left) {
			t.Errorf("%s: there is %q", name, left)
		}
		for _, name := range left {
			os.Remove(name)
		}
	}
	if err := f.GetOffer(7, 7, io.Discard, nil); !errors.Is(err, errNotOffered) {
		t.Errorf("offered no more: %v", err)
	}
}
