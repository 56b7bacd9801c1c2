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
	for _, dir := range []string{".", "../monitor", "../monitor/*", "../machine/*", "../holder", "../auth",
		"../../cmd/qtd"} {
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
// logger is anything whose name ends with log, and what a function with such a name, With or On returns.
func logKeys(t *testing.T, file string) (keys, events []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	firstKey := map[string]int{"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "Limited": 3,
		"LimitedInfo": 3}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		first, ok := firstKey[method.Sel.Name]
		if name := nameOf(method.X); !ok || !strings.HasSuffix(strings.ToLower(name), "log") && name != "With" &&
			name != "On" {
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

// nameOf returns the name of a variable, a field or a function that is called.
func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.CallExpr:
		return nameOf(x.Fun)
	}
	return ""
}

// checkLog checks that no line of a log has a key twice, and that lines about a client that has logged in say
// who it is, how it has proved that and, if they are about a session, which.
func checkLog(t *testing.T, log string) {
	t.Helper()
	client := []string{"client", "account", "uid", "proof"}
	session := append(slices.Clone(client), "session", "id")
	want := map[string][]string{
		"login": client, "revoke": client, "start": session, "attach": session, "resume": session, "move": session,
		"detach":   session,
		"withdraw": client, "kill": session, "clear": session, "rename": session, "refuse": {"client"},
		"gone": {"client", "uid", "id"},
	}
	for line := range strings.Lines(log) {
		fields := regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S*)`).FindAllStringSubmatch(line, -1)
		values := make(map[string]string)
		for _, f := range fields {
			if _, twice := values[f[1]]; twice {
				t.Errorf("a line has %s twice: %s", f[1], line)
			}
			values[f[1]] = f[2]
		}
		for _, key := range want[values["event"]] {
			if _, ok := values[key]; !ok {
				t.Errorf("a line lacks %s: %s", key, line)
			}
		}
	}
}
