package quicterm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The package documentation names functions and types that exist.
func TestOverview(t *testing.T) {
	folders := make(map[string]string) // by package name
	for _, p := range packages {
		folders[filepath.Base(p.path)] = p.path
	}
	names := strings.Join(slices.Sorted(maps.Keys(folders)), "|")
	mentioned := regexp.MustCompile(`\b(`+names+`)\.([A-Za-z]+(?:\.[A-Za-z]+)?)`).FindAllStringSubmatch(read(t, "doc.go"), -1)
	if len(mentioned) < 20 {
		t.Errorf("doc.go names %d functions and types, want at least 20", len(mentioned))
	}
	for _, m := range mentioned {
		if !declared(t, filepath.Join("..", folders[m[1]]))[m[2]] {
			t.Errorf("doc.go names %s, which package %s does not declare", m[0], folders[m[1]])
		}
	}
}

// declared returns the functions, the types, and their methods and fields (as Type.name) of
// a package, on all systems.
func declared(t *testing.T, folder string) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				found[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					s, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					found[s.Name.Name] = true
					structType, ok := s.Type.(*ast.StructType)
					if !ok {
						continue
					}
					for _, field := range structType.Fields.List {
						for _, name := range field.Names {
							found[s.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
		}
	}
	return found
}

// receiver returns the type of a method with a dot after it, or "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "" // of a generic type
}

// Every package says what it is for, in one file.
func TestPackagesAreDocumented(t *testing.T) {
	for _, p := range packages {
		files, err := filepath.Glob(filepath.Join("..", p.path, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var documented []string
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if file.Doc != nil {
				documented = append(documented, name)
			}
		}
		if len(documented) != 1 {
			t.Errorf("package %s has its comment in %q, want one file", p.path, documented)
		}
	}
}

// The pages link to files that exist, and ARCHITECTURE.md to every package that is not part of
// another.
func TestPages(t *testing.T) {
	links := make(map[string][]string)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md", "../ARCHITECTURE.md", "../SECURITY.md", "../CONTRIBUTING.md", "../CHANGELOG.md") {
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(read(t, page), -1) {
			links[page] = append(links[page], m[1])
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
	for _, p := range packages {
		linked := func(link string) bool { return link == p.path || strings.HasPrefix(p.path, link+"/") }
		if p.path != "quicterm" && !slices.ContainsFunc(links["../ARCHITECTURE.md"], linked) {
			t.Errorf("ARCHITECTURE.md does not link to %s: add it to the table of packages", p.path)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Every row of the pages on security and faults names tests, and they exist.
func TestSecurityPage(t *testing.T) {
	tests := make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			maps.Copy(tests, declared(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := read(t, "../docs/security.md") + read(t, "../docs/reliability.md")
	rows := regexp.MustCompile(`(?m)^\|.*\| *([^|]*?) *\|$`).FindAllStringSubmatch(pages, -1)
	for _, row := range rows {
		if row[1] == "test" || row[1] == "---" { // the heading of a table
			continue
		}
		names := regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1)
		if len(names) == 0 {
			t.Errorf("no test in row %q", row[0])
		}
		for _, name := range names {
			if !tests[name[1]] || !strings.HasPrefix(name[1], "Test") && !strings.HasPrefix(name[1], "Fuzz") {
				t.Errorf("there is no test %s, which a page names", name[1])
			}
		}
	}
}
