package screen

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// An oracle is xterm.js, run by testdata/oracle.
type oracle struct {
	in  *json.Encoder
	out *bufio.Reader
}

// A liveCase is a request to the oracle. A step is output as []byte, or a size as [2]int.
type liveCase struct {
	Cols       int   `json:"cols"`
	Rows       int   `json:"rows"`
	Scrollback int   `json:"scrollback"`
	Steps      []any `json:"steps"`
	State      bool  `json:"state"`
}

// A liveDump is the oracle's answer.
type liveDump struct {
	Dump
	State map[string]any `json:"state"`
}

// startOracle starts xterm.js in the folder SCREEN_ORACLE, or skips the test. It returns how many random
// cases to try, SCREEN_CASES, and their seed, SCREEN_SEED.
func startOracle(t *testing.T, cases int) (*oracle, *rand.Rand, int) {
	t.Helper()
	dir := os.Getenv("SCREEN_ORACLE")
	if dir == "" {
		t.Skip("SCREEN_ORACLE names no folder with xterm.js: see testdata/oracle")
	}
	cmd := exec.CommandContext(t.Context(), "node", "oracle.mjs", "--serve")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if n, err := strconv.Atoi(os.Getenv("SCREEN_CASES")); err == nil {
		cases = n
	}
	seed, _ := strconv.ParseUint(os.Getenv("SCREEN_SEED"), 10, 64)
	return &oracle{json.NewEncoder(in), bufio.NewReader(out)}, rand.New(rand.NewPCG(seed, 14)), cases
}

// ask returns what xterm.js shows and keeps, or nil if it fails.
func (o *oracle) ask(t *testing.T, c liveCase) *liveDump {
	t.Helper()
	c.State = true
	if c.Scrollback == 0 {
		c.Scrollback = 5000
	}
	c.Steps = append([]any{}, c.Steps...)
	for i, step := range c.Steps {
		if b, ok := step.([]byte); ok && b == nil {
			c.Steps[i] = []byte{} // not null
		}
	}
	if err := o.in.Encode(c); err != nil {
		t.Fatal(err)
	}
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var d *liveDump
	if err := json.Unmarshal(line, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// recordings returns the names and bytes of the recordings, without those that we show differently.
func recordings(t *testing.T) (names []string, raws [][]byte) {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.raw")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings:", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".raw")
		if _, differs := differences[name]; differs || name == "micro/decfi_bi" || name == "micro/decsc_cs" {
			continue // these two differ before their end, or in what does not show
		}
		names, raws = append(names, name), append(raws, read(t, file))
	}
	return names, raws
}

// TestLiveSnapshot compares xterm.js after a snapshot, then and after the rest of a recording, with xterm.js
// after the recording itself.
func TestLiveSnapshot(t *testing.T) {
	o, r, cases := startOracle(t, 300)
	names, raws := recordings(t)
	for i := range cases {
		n := r.IntN(len(raws))
		raw := raws[n]
		at := r.IntN(len(raw) + 1)
		s := New(80, 24, Limits{Lines: 5000, Bytes: 64 << 20})
		s.Write(raw[:at])
		snapshot := s.Snapshot(Snapshot{Lines: 5000})
		for _, rest := range [][]byte{nil, raw[at:]} {
			want := o.ask(t, liveCase{Cols: 80, Rows: 24, Steps: []any{raw[:at], rest}})
			got := o.ask(t, liveCase{Cols: 80, Rows: 24, Steps: []any{snapshot, rest}})
			if diff := diffLive(got, want); diff != "" {
				t.Errorf("case %d: %s, snapshot at %d of %d, %d more bytes: %s\n%.500q", i, names[n], at, len(raw), len(rest), diff, snapshot)
				break
			}
		}
	}
	t.Logf("%d cases", cases)
}

// diffLive returns the first difference of two terminals.
func diffLive(got, want *liveDump) string {
	if got == nil || want == nil {
		return fmt.Sprint("xterm.js fails: ", got == nil, want == nil)
	}
	if diff := compare(got.Dump, want.Dump); diff != "" {
		return diff
	}
	for key, w := range want.State {
		if g := got.State[key]; !reflect.DeepEqual(g, w) {
			return fmt.Sprintf("%s: got %v, want %v", key, g, w)
		}
	}
	return ""
}

// TestLiveUndo compares xterm.js after parts of recordings and what undoes them with a fresh xterm.js.
func TestLiveUndo(t *testing.T) {
	o, r, cases := startOracle(t, 300)
	names, raws := recordings(t)
	fresh := o.ask(t, liveCase{Cols: 80, Rows: 24})
	for i := range cases {
		n := r.IntN(len(raws))
		raw := raws[n]
		at := r.IntN(len(raw) + 1)
		s := New(80, 24, Limits{})
		s.Write(raw[:at])
		undo := s.Undo()
		got := o.ask(t, liveCase{Cols: 80, Rows: 24, Steps: []any{raw[:at], undo}})
		want := *fresh
		// Text, the position and the title stay, and what DECSC saved.
		want.Screen, want.Scrollback, want.Cursor, want.Title = got.Screen, got.Scrollback, got.Cursor, got.Title
		for _, buffer := range []string{"normal", "active"} {
			got.State[buffer].(map[string]any)["saved"] = want.State[buffer].(map[string]any)["saved"]
		}
		if diff := diffLive(got, &want); diff != "" {
			t.Errorf("case %d: %s, undone at %d of %d by %q: %s", i, names[n], at, len(raw), undo, diff)
		}
	}
	t.Logf("%d cases", cases)
}

// TestLiveRandom compares random output with xterm.js, and with xterm.js after a snapshot in between. It has
// nothing in which we differ by intention, see differences, and no resizes: see TestResizeAgainstXterm. A few
// cases differ, since xterm.js leaves halves of wide characters.
func TestLiveRandom(t *testing.T) {
	o, r, cases := startOracle(t, 300)
	failed := 0
	for i := range cases {
		cols, rows := 4+r.IntN(30), 3+r.IntN(12)
		c := liveCase{Cols: cols, Rows: rows}
		s := New(cols, rows, Limits{Lines: 5000, Bytes: 64 << 20})
		continued := liveCase{Steps: []any{}}
		for range 1 + r.IntN(4) {
			output := randomSession(r)
			at := r.IntN(len(output) + 1)
			s.Write(output[:at])
			continued = liveCase{Cols: cols, Rows: rows, Steps: []any{s.Snapshot(Snapshot{Lines: 5000}), output[at:]}}
			s.Write(output[at:])
			c.Steps = append(c.Steps, output[:at], output[at:])
		}
		want := o.ask(t, c)
		if want == nil {
			continue
		}
		diff := compare(s.Dump(), want.Dump)
		if diff == "" {
			got := o.ask(t, continued)
			for _, d := range []*liveDump{got, want} { // no terminal can be told that the first row continues one
				for _, rows := range [][]DumpRow{d.Scrollback, d.Screen, d.Main} {
					if len(rows) > 0 {
						rows[0].Wrap = false
					}
				}
			}
			if diff = diffLive(got, want); diff != "" {
				diff = "after the snapshot:" + diff
			}
		}
		if diff != "" {
			failed++
			t.Logf("case %d, %dx%d: %.600s\nsteps %q\nsnapshot %q", i, c.Cols, c.Rows, diff, c.Steps, continued.Steps)
		}
	}
	t.Logf("%d of %d cases differ", failed, cases)
	if failed*100 > cases {
		t.Error("more than 1 % differ")
	}
}

// randomSession returns text and control sequences.
func randomSession(r *rand.Rand) (output []byte) {
	texts := []string{
		"a", "bc", "hello ", "world", "x y z", "0123456789012345678901234567890123456789", "\r\n", "\n", "\r", "\t", "\b", "宽", "宽字符",
		"e\u0301", "é", "😀", "─│", "   ",
	}
	sequences := []string{
		"\x1bD", "\x1bE", "\x1bM", "\x1b(0", "\x1b(B", "\x0e", "\x0f", "\x1b)0", "\x1b#8",
		"\x1b[4h", "\x1b[4l", "\x1b[?47h", "\x1b[?47l", "\x1b[?2004h", "\x1b[?1000;1006h", "\x1b[?25l", "\x1b=", "\x1b[3 @", "\x1b[2 A",
		"\x1b[2J", "\x1b[J", "\x1b[3J", "\x1b]0;title\a", "\x1b]8;;http://a.example\a", "\x1b]8;;\a", "\x1b[4:3m", "\x1b[38;5;200;48;2;1;2;3m",
	}
	const finals = "@ABCDEFGHIKLMPSTXZ`abdefr"
	for range r.IntN(60) {
		switch r.IntN(12) {
		case 0, 1, 2:
			output = fmt.Appendf(output, "\x1b[%d%c", r.IntN(8), finals[r.IntN(len(finals))])
		case 3:
			output = fmt.Appendf(output, "\x1b[%d;%dH", r.IntN(14), r.IntN(32))
		case 4:
			output = fmt.Appendf(output, "\x1b[%d;%dm", r.IntN(10), []int{0, 31, 42, 27, 100}[r.IntN(5)])
		case 5:
			output = append(output, sequences[r.IntN(len(sequences))]...)
		case 6:
			output = fmt.Appendf(output, "\x1b[%d;%dr", 1+r.IntN(6), 1+r.IntN(12))
		default:
			output = append(output, texts[r.IntN(len(texts))]...)
		}
	}
	return output
}
