package doctor

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

// The lines that the page on troubleshooting quotes are printed by a doctor: there is a call of Add whose state, words and
// advice they fit, and what the call takes from elsewhere is made of words of the programs.
func TestQuotes(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	var calls []call
	words := new(literals)
	for _, pattern := range []string{"*.go", "../monitor/*.go", "../monitor/*/*.go", "../machine/*/*.go", "../auth/*.go",
		"../client/*.go", "../client/*/*.go", "../../configs/*.go", "../../cmd/qt/*.go", "../../cmd/qtd/*.go"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, addCalls(file)...)
			words.add(file)
		}
	}
	if len(calls) < 50 {
		t.Fatalf("only %d calls of Add were found", len(calls))
	}
	quotes := regexp.MustCompile(`(?m)^(ok|warn|fail|skip) +([a-z]+) +(.*)$`).FindAllStringSubmatch(string(page), -1)
	if len(quotes) < 20 {
		t.Fatalf("only %d lines are quoted", len(quotes))
	}
	for _, q := range quotes {
		state, id, text := q[1], q[2], q[3]
		found := false
		for _, c := range calls {
			found = found || c.fits(state, id, text, words)
		}
		if !found {
			t.Errorf("no doctor prints %s", q[0])
		}
	}
}

// A call of Add, of which only some is literal. Parts that are not are .+ in a pattern.
type call struct {
	id, state string   // empty if they are not literal
	found     string   // a pattern
	todos     []string // patterns: that of what to do, or several of which one holds
}

// fits reports whether a line may be that of the call. What is not literal in what was found must have a literal of the
// programs in it.
func (c *call) fits(state, id, text string, words *literals) bool {
	if c.state != "" && c.state != state || c.id != "" && c.id != id {
		return false
	}
	for _, todo := range c.todos {
		found, advice, advised := strings.Cut(text, " — ")
		is := func(pattern, text string) bool {
			return regexp.MustCompile("^"+pattern+"$").MatchString(text) && (pattern != anything || words.in(text))
		}
		if is(c.found, found) && (advised && is(todo, advice) || !advised && (todo == "" || todo == anything)) {
			return true
		}
	}
	return false
}

// anything is the pattern of what is not literal.
const anything = "(?:.+)"

// addCalls returns the calls of Add of a file.
func addCalls(file *ast.File) (calls []call) {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(function, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) < 4 {
				return true
			}
			if s, ok := c.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "Add" {
				return true
			}
			one := call{found: pattern(c.Args[3])}
			if text, ok := literal(c.Args[0]); ok {
				one.id = text
			}
			name := ""
			switch state := c.Args[1].(type) {
			case *ast.Ident:
				name = state.Name
			case *ast.SelectorExpr:
				name = state.Sel.Name
			}
			if known := map[string]State{"OK": OK, "Warn": Warn, "Fail": Fail, "Skip": Skip}[name]; known != "" {
				one.state = string(known)
			}
			one.todos = []string{pattern(c.Args[2])}
			if variable, ok := c.Args[2].(*ast.Ident); ok {
				one.todos = assigned(function, variable.Name)
			}
			calls = append(calls, one)
			return true
		})
	}
	return calls
}

// assigned returns the patterns of what a function assigns to a variable, or anything.
func assigned(function *ast.FuncDecl, name string) (patterns []string) {
	add := func(names []ast.Expr, values []ast.Expr) {
		for i, n := range names {
			if variable, ok := n.(*ast.Ident); ok && variable.Name == name && i < len(values) {
				patterns = append(patterns, pattern(values[i]))
			}
		}
	}
	ast.Inspect(function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			add(n.Lhs, n.Rhs)
		case *ast.ValueSpec:
			for _, variable := range n.Names {
				add([]ast.Expr{variable}, n.Values)
			}
		}
		return true
	})
	if patterns == nil {
		return []string{anything}
	}
	return patterns
}

// literal returns the text of an expression that is a literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// verbs are those of a format.
var verbs = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)

// pattern returns a pattern of what an expression prints: a literal, a sum of some, a call with a format, or anything.
func pattern(e ast.Expr) string {
	if text, ok := literal(e); ok {
		text = regexp.QuoteMeta(strings.ReplaceAll(text, "%%", "\x00"))
		return strings.ReplaceAll(verbs.ReplaceAllLiteralString(text, anything), "\x00", "%")
	}
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return pattern(e.X) + pattern(e.Y)
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sprintf" {
			return pattern(e.Args[0])
		}
	}
	return anything
}

// literals are patterns of the texts of programs.
type literals struct{ patterns []*regexp.Regexp }

// leastLiteral is how many bytes of a text that are not of verbs tell it from others.
const leastLiteral = 10

// add adds those of a file.
func (l *literals) add(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(*ast.BasicLit); ok {
			if text, _ := literal(e); len(strings.TrimSpace(verbs.ReplaceAllLiteralString(text, ""))) >= leastLiteral {
				l.patterns = append(l.patterns, regexp.MustCompile(pattern(e)))
			}
		}
		return true
	})
}

// in reports whether one is in a text.
func (l *literals) in(text string) bool {
	return slices.ContainsFunc(l.patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}
