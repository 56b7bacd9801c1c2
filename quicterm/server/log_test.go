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

// The keys and events of all log lines of the daemon and the holder are those that the section "The
// log" of docs/operate.md lists, and no other.
func TestLogKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The log\n")
	section, _, _ = strings.Cut(section, "\n## ")
	events, keys, _ := strings.Cut(section, "\n| key |")
	var used, usedEvents []string
	for _, dir := range []string{".", "../monitor", "../floodlog", "../panics", "../holder", "../auth", "../account", "../rundir", "../../cmd/qtd"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				k, e := logKeys(t, file)
				used, usedEvents = append(used, k...), append(usedEvents, e...)
			}
		}
	}
	compare := func(what string, page string, code []string) {
		t.Helper()
		var listed []string
		for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(page, -1) {
			listed = append(listed, m[1])
		}
		slices.Sort(listed)
		slices.Sort(code)
		if code = slices.Compact(code); !slices.Equal(listed, code) {
			t.Errorf("%s: the page lists\n%q, the code logs\n%q", what, listed, code)
		}
	}
	compare("keys", keys, used)
	compare("events", events, usedEvents)
}

// logKeys returns the keys of the calls of a logger in a file, and the values of the key event. A
// logger is anything whose name ends with log.
func logKeys(t *testing.T, file string) (keys, events []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	firstKey := map[string]int{"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "Limited": 3}
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
				if key == "event" {
					event, _ := strconv.Unquote(call.Args[i+1].(*ast.BasicLit).Value)
					events = append(events, event)
				}
			}
		}
		return true
	})
	return keys, events
}
