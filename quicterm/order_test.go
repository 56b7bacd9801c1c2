package quicterm_test

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// orders are the files of packages in the order in which they build on each other: a file uses functions of its own
// and of those before it. So a reader can begin at the first, or at the last, and meets nothing twice. Files of a
// system stand for those of all systems.
var orders = map[string]string{
	"quicterm/holder": `doc timers program attachment clients
		agent calls event ports emulator snapshot draw hint progress pressure log record
		catchup lifetime activity size members input output
		revoke carry resume attach requests
		holder serve main`,
}

func TestFilesBuildOnThoseBefore(t *testing.T) {
	for path, files := range orders {
		order := strings.Fields(files)
		fset := token.NewFileSet()
		parsed := make([]*ast.File, len(order))
		for i, name := range order {
			var err error
			if parsed[i], err = parser.ParseFile(fset, filepath.Join("..", path, name+".go"), nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
		config := types.Config{Importer: exported(t, fset, path), Error: func(error) {}}
		config.Check(module+path, fset, parsed, &info)
		place := func(p token.Pos) int {
			name := filepath.Base(fset.Position(p).Filename)
			return slices.Index(order, strings.TrimSuffix(name, ".go"))
		}
		found := 0
		for use, object := range info.Uses {
			if f, ok := object.(*types.Func); ok && f.Pkg() != nil && f.Pkg().Path() == module+path {
				if found++; place(f.Pos()) > place(use.Pos()) {
					t.Errorf("%s uses %s of %s.go, which is behind it in the order of files",
						fset.Position(use.Pos()), f.Name(), order[place(f.Pos())])
				}
			}
		}
		if found == 0 {
			t.Errorf("%s: no use of a function was found", path)
		}
		all, err := filepath.Glob(filepath.Join("..", path, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range all {
			name := strings.TrimSuffix(filepath.Base(file), ".go")
			other := strings.HasSuffix(name, "_test") || strings.HasSuffix(name, "_darwin") || strings.HasSuffix(name, "_windows")
			if !other && !slices.Contains(order, name) {
				t.Errorf("%s has no place in the order of files in quicterm/order_test.go", file)
			}
		}
	}
}

// exported imports what a package imports as the go command has built it.
func exported(t *testing.T, fset *token.FileSet, path string) types.Importer {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export", module+path).Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := make(map[string]string)
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}
