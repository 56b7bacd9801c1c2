package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Location is a path on this machine, or on a server.
type Location struct {
	Files *Files // nil for this machine
	Path  string // of a server with slashes, from the home directory on
}

// split returns the directory of a location, as a tree, and the name in it. The name is "." if the path has none.
func (l Location) split() (t tree, name string) {
	if l.Files == nil {
		p := filepath.Clean(l.Path) // Dir takes what ends with a slash for a directory in itself
		if name = filepath.Base(p); name == "." || name == ".." || name == string(filepath.Separator) {
			return &local{dir: p}, "."
		}
		return &local{dir: filepath.Dir(p)}, name
	}
	p := l.Path
	if rest, ok := strings.CutPrefix(p, "~"); ok && (rest == "" || rest[0] == '/') {
		p = strings.TrimLeft(rest, "/")
	}
	p = path.Clean(p)
	if name = path.Base(p); name == "." || name == ".." || name == "/" {
		return &remote{l.Files, p}, "."
	}
	return &remote{l.Files, path.Dir(p)}, name
}

// within returns the tree below a directory of a tree, to write there.
func within(t tree, name string) (tree, error) {
	switch t := t.(type) {
	case *local:
		root, err := os.OpenRoot(t.path(name))
		return &local{dir: t.path(name), root: root}, err
	case *remote:
		return &remote{t.Files, t.path(name)}, nil
	}
	panic("there is no other tree")
}

// inside reports whether a new file of a tree is below a directory of a tree of the same machine.
func inside(below tree, name string, above tree, base string) bool {
	return strings.HasPrefix(path.Join(below.real("."), name)+"/", strings.TrimSuffix(above.real(base), "/")+"/")
}

// isDevice reports whether a name is that of a device, a pipe or a socket, whose place no copy takes.
func isDevice(t tree, name string) bool {
	info, err := t.stat(name)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// Copy copies files, and directories with Recursive, to a location: into it if that is a directory, or else with its
// name. Links below a directory are copied as links, others are followed. ErrIncomplete says that Failed was called. When
// the context ends, Copy closes the files of all locations, and returns the context's cause.
func Copy(ctx context.Context, from []Location, to Location, o Options, p *Progress) error {
	target, name := to.split()
	there := wire.Printable(target.label(name), maxLine)
	info, err := target.stat(name)
	into := err == nil && info.IsDir()
	switch {
	case into:
		target, err = within(target, name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
	case len(from) > 1 || strings.HasSuffix(to.Path, "/") || name == ".":
		return fmt.Errorf("%s: there is no such directory", there)
	default:
		target, err = within(target, ".")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", there, err)
	}
	defer target.close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		for _, l := range slices.Concat(from, []Location{to}) {
			if l.Files != nil {
				go l.Files.Close() // or a request would wait for a network
			}
		}
	})()
	c := newCopier(ctx, stop, target, o, p)
	seen := make(map[string]bool)
	for _, l := range from {
		source, base := l.split()
		info, err := source.stat(base)
		j := job{from: source, name: base, to: base, info: info}
		if !into {
			j.to = name
		}
		switch {
		case err != nil:
			err = ofSource(err)
		case seen[j.to]:
			err = ofSource(errors.New("another one has the same name"))
		case isDevice(target, j.to):
			err = errors.New("it is neither a file nor a directory")
		case info.IsDir() && l.Files == to.Files && inside(target, j.to, source, base):
			err = ofSource(errors.New("it cannot be copied into itself"))
		}
		if err != nil {
			c.fail(j, err)
			continue
		}
		seen[j.to] = true
		c.add(j)
	}
	return c.run()
}
