package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// A testCase is a case of testdata/xterm.mjs.
type testCase struct {
	Cols       int    `json:"cols"`
	Rows       int    `json:"rows"`
	Scrollback int    `json:"scrollback"`
	Steps      []step `json:"steps"`
}

type step struct {
	Write  []byte `json:"write,omitempty"`
	Resize []int  `json:"resize,omitempty"`
}

func (c testCase) run() *Screen {
	s := New(c.Cols, c.Rows, Limits{Lines: c.Scrollback, Bytes: 64 << 20})
	for _, step := range c.Steps {
		if step.Resize != nil {
			s.Resize(step.Resize[0], step.Resize[1])
		}
		s.Write(step.Write)
	}
	return s
}

// TestRandomAgainstXterm compares the screens of random output and resizes with those of xterm.js,
// which must be installed in the folder XTERM: see testdata/xterm.mjs. XTERM_SEED and XTERM_CASES choose the cases.
func TestRandomAgainstXterm(t *testing.T) {
	dir := os.Getenv("XTERM")
	if dir == "" {
		t.Skip("XTERM is not set")
	}
	seed, _ := strconv.ParseUint(os.Getenv("XTERM_SEED"), 10, 64)
	count, _ := strconv.Atoi(os.Getenv("XTERM_CASES"))
	cases := make([]testCase, max(count, 500))
	for i := range cases {
		cases[i] = randomCase(rand.New(rand.NewPCG(seed, uint64(i))))
	}
	wrong := 0
	for i, diff := range compareAll(t, dir, cases) {
		if diff == "" {
			continue
		}
		if wrong++; wrong <= 3 {
			c, diff := shrink(t, dir, cases[i], diff)
			t.Errorf("case %d: %dx%d\n%s\n%s", i, c.Cols, c.Rows, c.describe(), diff)
		}
	}
	t.Logf("%d of %d cases differ", wrong, len(cases))
}

// compareAll returns the differences of each case.
func compareAll(t *testing.T, dir string, cases []testCase) []string {
	t.Helper()
	diffs := make([]string, len(cases))
	for i, want := range askXterm(t, dir, cases) {
		if want != nil {
			diffs[i] = compare(cases[i].run().Dump(), *want)
		}
	}
	return diffs
}

// shrink removes the steps that do not matter.
func shrink(t *testing.T, dir string, c testCase, diff string) (testCase, string) {
	t.Helper()
	for size := max(len(c.Steps)/2, 1); size > 0; {
		var smaller []testCase
		for i := 0; i < len(c.Steps); i += size {
			less := c
			less.Steps = slices.Delete(slices.Clone(c.Steps), i, min(i+size, len(c.Steps)))
			smaller = append(smaller, less)
		}
		found := false
		for i, d := range compareAll(t, dir, smaller) {
			if d != "" {
				c, diff, found = smaller[i], d, true
				break
			}
		}
		if !found {
			size /= 2
		}
	}
	return c, diff
}

func (c testCase) describe() (text string) {
	for _, s := range c.Steps {
		if s.Resize != nil {
			text += fmt.Sprintf("  resize %v\n", s.Resize)
		} else {
			text += fmt.Sprintf("  write %q\n", s.Write)
		}
	}
	return text
}

// askXterm returns what xterm.js shows, nil where it fails.
func askXterm(t *testing.T, dir string, cases []testCase) []*Dump {
	t.Helper()
	script, err := filepath.Abs("testdata/xterm.mjs")
	if err != nil {
		t.Fatal(err)
	}
	var in bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, c := range cases {
		enc.Encode(c)
	}
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var dumps []*Dump
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var d *Dump
		if err := dec.Decode(&d); err != nil {
			t.Fatal(err)
		}
		dumps = append(dumps, d)
	}
	if len(dumps) != len(cases) {
		t.Fatalf("%d dumps for %d cases", len(dumps), len(cases))
	}
	return dumps
}

func randomCase(r *rand.Rand) testCase {
	c := testCase{Cols: 2 + r.IntN(30), Rows: 1 + r.IntN(12), Scrollback: 1 + r.IntN(40)}
	for range 1 + r.IntN(4) {
		for _, token := range randomOutput(r) {
			c.Steps = append(c.Steps, step{Write: token})
		}
		if r.IntN(3) == 0 && os.Getenv("XTERM_RESIZE") != "no" {
			c.Steps = append(c.Steps, step{Resize: []int{2 + r.IntN(30), 1 + r.IntN(12)}})
		}
	}
	return c
}

// randomOutput returns output that xterm.js and we should show alike.
func randomOutput(r *rand.Rand) (tokens [][]byte) {
	texts := []string{
		"a", "bc", "hello ", "world", "x y z", "0123456789012345678901234567890123456789", "\r\n", "\n", "\r", "\t", "\b",
		"宽", "宽字符", "e\u0301", "é", "😀", "─│", "   ",
	}
	finals := "@ABCDEFGHIJKLMPSTXZ`abdefr"
	for range r.IntN(60) {
		var out []byte
		switch r.IntN(12) {
		case 0, 1, 2:
			out = fmt.Appendf(out, "\x1b[%d%c", r.IntN(8), finals[r.IntN(len(finals))])
		case 3:
			out = fmt.Appendf(out, "\x1b[%d;%dH", r.IntN(14), r.IntN(32))
		case 4:
			out = fmt.Appendf(out, "\x1b[%d;%dm", r.IntN(10), []int{0, 31, 42, 27, 100}[r.IntN(5)])
		case 5:
			out = append(out, []string{
				"\x1bD", "\x1bE", "\x1bM", "\x1bH", "\x1b(0", "\x1b(B", "\x0e", "\x0f", "\x1b)0", "\x1b#8", "\x1b[!p",
				"\x1b[4h", "\x1b[4l", "\x1b[?47h", "\x1b[?47l",
				"\x1b[1\"q", "\x1b[0\"q", "\x1b[?J", "\x1b[?1K", "\x1b[3 @", "\x1b[2 A", "\r\x1b[2'}", "\r\x1b[3'~", "\x1b[?45h", "\x1b[?45l", "\x1b[2J",
			}[r.IntN(26)]...)
		case 6:
			out = fmt.Appendf(out, "\x1b[%d;%dr", 1+r.IntN(6), 1+r.IntN(12))
		default:
			out = append(out, texts[r.IntN(len(texts))]...)
		}
		tokens = append(tokens, out)
	}
	return tokens
}
