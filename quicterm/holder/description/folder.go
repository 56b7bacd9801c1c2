//go:build linux || darwin

// Package description gives the program of a session the description of a terminal that this machine does not know: the
// terminfo entry of the client for which the session was started, checked and written anew, in a folder that lives as
// long as the session. Nothing but that folder and the program's environment changes.
package description

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/machine/rundir"
	"github.com/quicterm/quicterm/quicterm/machine/terminfo"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// suffix ends the name of a folder, which begins with that of its session's socket.
const suffix = ".terminfo"

// freshTime is how old the files may become before they are written again: systems remove what is older than some days
// from temporary directories.
const freshTime = 24 * time.Hour

// A Folder is where the program finds the entry. Nil is none.
type Folder struct {
	base  rundir.Base
	name  string
	term  string
	entry []byte
}

// Provide makes a folder with the entry of a launch, and changes the environment of the launch such that its program
// looks there. It returns nil if there is no entry, or if the program finds one without it.
func Provide(launch *wire.Launch) (*Folder, error) {
	if len(launch.Terminfo) == 0 || !launch.PTY {
		return nil, nil
	}
	came := launch.Terminfo
	launch.Terminfo = nil // the launch is kept
	getenv := func(name string) (value string) {
		for _, v := range launch.Env {
			if rest, ok := strings.CutPrefix(v, name+"="); ok {
				value = rest // the last one counts
			}
		}
		return value
	}
	f := &Folder{base: rundir.Base(launch.Base), name: socket.Name(launch.ID) + suffix, term: getenv("TERM")}
	if f.term == "" {
		return nil, nil
	}
	if _, err := terminfo.Find(f.term, getenv); err == nil {
		return nil, nil
	}
	e, err := terminfo.Decode(came)
	if err != nil {
		return nil, err
	}
	if !e.Is(f.term) {
		return nil, fmt.Errorf("the client's terminfo entry is not that of %q", f.term)
	}
	e.Detach()
	f.sweep()
	if f.entry, err = e.Encode(); err != nil {
		return nil, err
	}
	dir, err := f.write()
	if err != nil {
		f.Remove()
		return nil, err
	}
	// Behind the colon: where the system looks without the variable.
	launch.Env = append(launch.Env, "TERMINFO_DIRS="+dir+":"+getenv("TERMINFO_DIRS"))
	return f, nil
}

// Restore writes the files again if the system has removed them, or could do so.
func (f *Folder) Restore() error {
	if f == nil {
		return nil
	}
	_, err := f.write()
	return err
}

// open opens the directory in which the folder is.
func (f *Folder) open() (*os.Root, error) {
	dir, err := f.base.Make()
	if err != nil {
		return nil, err
	}
	return rundir.Open(dir)
}

// write writes the files that are not there, or not fresh, and returns the path of the folder.
func (f *Folder) write() (path string, err error) {
	root, err := f.open()
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, file := range terminfo.Paths(f.term) {
		file = filepath.Join(f.name, file)
		if info, err := root.Stat(file); err == nil && time.Since(info.ModTime()) < freshTime {
			continue
		}
		if err := root.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return "", err
		}
		if err := root.WriteFile(file+".new", f.entry, 0o600); err != nil {
			return "", err
		}
		if err := root.Rename(file+".new", file); err != nil {
			return "", err
		}
	}
	return filepath.Join(root.Name(), f.name), nil
}

// sweep removes the folders of sessions whose process was killed. Those that live have a socket.
func (f *Folder) sweep() {
	root, err := f.open()
	if err != nil {
		return
	}
	defer root.Close()
	names, _ := fs.ReadDir(root.FS(), ".")
	for _, n := range names {
		s, ok := strings.CutSuffix(n.Name(), suffix)
		if _, isSocket := socket.ParseName(s); !ok || !isSocket || n.Name() == f.name {
			continue
		}
		lives := false
		for _, dir := range f.base.Dirs(uint32(os.Geteuid())) {
			_, err := os.Lstat(filepath.Join(dir, s))
			lives = lives || err == nil
		}
		if !lives {
			root.RemoveAll(n.Name())
		}
	}
}

// Remove removes the folder, at the end of the session.
func (f *Folder) Remove() {
	if f == nil {
		return
	}
	if root, err := f.open(); err == nil {
		root.RemoveAll(f.name)
		root.Close()
	}
}
