//go:build linux || darwin

package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The keys of all log lines of the daemon and the holder are those of the list in the
// package's documentation, and no other.
func TestLogKeys(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "# Log")
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+) `).FindAllStringSubmatch(list, -1) {
		want = append(want, m[1])
	}
	used := make(map[string]bool)
	for _, dir := range []string{".", "../holder", "../auth", "../account", "../rundir", "../../cmd/qtd"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, key := range logKeys(t, file) {
				used[key] = true
				if !slices.Contains(want, key) {
					t.Errorf("%s logs the key %q, which is not in the list", file, key)
				}
			}
		}
	}
	for _, key := range want {
		if !used[key] {
			t.Errorf("nothing logs the key %q of the list", key)
		}
	}
}

// logKeys returns the keys of the calls of a logger in a file. A logger is anything
// whose name ends with log.
func logKeys(t *testing.T, file string) (keys []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	firstKey := map[string]int{"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "warn": 3}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := ""
		switch x := method.X.(type) {
		case *ast.Ident:
			name = x.Name
		case *ast.SelectorExpr:
			name = x.Sel.Name
		}
		first, ok := firstKey[method.Sel.Name]
		if !ok || !strings.HasSuffix(strings.ToLower(name), "log") {
			return true
		}
		for i := first; i < len(call.Args); i += 2 {
			if lit, ok := call.Args[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				key, _ := strconv.Unquote(lit.Value)
				keys = append(keys, key)
			}
		}
		return true
	})
	return keys
}
