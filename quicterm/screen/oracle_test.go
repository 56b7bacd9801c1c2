package screen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// differences are the recordings that we show differently than xterm.js, and why.
var differences = map[string]string{
	"micro/sgr_colon": "xterm.js takes the r of 38:2:r:g:b for a colour space; xterm and most terminals do not",
	"vttest/decfi":    "xterm.js has no DECFI and DECBI",
	"vttest/protect":  "ED 1 ends the line below the cursor: xterm.js ends one in the scrollback",
	"micro/slrm":      "xterm.js has no left and right margins",
}

// TestAgainstXterm compares what we show of recordings, cut into random chunks, with what xterm.js
// shows. testdata has the recordings and, as JSON, xterm.js's screens.
func TestAgainstXterm(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.raw")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings:", err)
	}
	exact := 0
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".raw")
		ok := t.Run(name, func(t *testing.T) {
			raw, wants := read(t, file), readAnswers(t, file)
			why, known := differences[name]
			differs := false
			for seed := range uint64(5) {
				s := New(wants[0].Cols, wants[0].Rows, Limits{Lines: 5000, Bytes: 64 << 20})
				at := 0
				for i, want := range wants {
					for _, chunk := range cut(raw[at:want.At], seed) {
						s.Write(chunk)
					}
					at = want.At
					diff := compare(s.Dump(), want.Dump)
					differs = differs || diff != ""
					if diff != "" && !known {
						t.Fatalf("chunks %d, screen %d: %s", seed, i, diff)
					}
				}
			}
			if known && !differs {
				t.Errorf("no longer different: remove it from the list (%s)", why)
			}
		})
		if _, known := differences[name]; ok && !known {
			exact++
		}
	}
	t.Logf("%d of %d recordings are exact", exact, len(files))
	if exact*100 < len(files)*97 {
		t.Errorf("%d of %d recordings are exact, want 97 %%", exact, len(files))
	}
}

// An answer is what xterm.js shows after the first At bytes of a recording.
type answer struct {
	At int `json:"at"`
	Dump
}

// readAnswers reads the answers for a recording: one at its end, or a list.
func readAnswers(t testing.TB, file string) (answers []answer) {
	t.Helper()
	text := read(t, strings.TrimSuffix(file, "raw")+"json")
	if text[0] != '[' {
		text = fmt.Appendf(nil, "[%s]", text)
	}
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	if len(answers) == 1 {
		answers[0].At = len(read(t, file))
	}
	return answers
}

// cut cuts a recording into random chunks; seed 0 leaves it whole, 1 cuts it into bytes.
func cut(raw []byte, seed uint64) [][]byte {
	switch seed {
	case 0:
		return [][]byte{raw}
	case 1:
		return slices.Collect(slices.Chunk(raw, 1))
	}
	var chunks [][]byte
	random := rand.New(rand.NewPCG(seed, 0))
	for len(raw) > 0 {
		n := min(len(raw), 1+random.IntN(1<<random.IntN(13)))
		chunks = append(chunks, raw[:n])
		raw = raw[n:]
	}
	return chunks
}

// compare returns the first differences, or nothing.
func compare(got, want Dump) string {
	var b strings.Builder
	differ := func(what string, got, want any) {
		if b.Len() < 2000 {
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			if string(g) != string(w) {
				fmt.Fprintf(&b, "\n%s:\n  got %s\n want %s", what, g, w)
			}
		}
	}
	rows := func(what string, got, want []DumpRow) {
		differ(what+": rows", len(got), len(want))
		for i := range min(len(got), len(want)) {
			differ(fmt.Sprintf("%s %d", what, i), got[i], want[i])
		}
	}
	differ("cursor", got.Cursor, want.Cursor)
	differ("title", got.Title, want.Title)
	differ("alternate", got.Alternate, want.Alternate)
	differ("modes", got.Modes, want.Modes)
	rows("scrollback", got.Scrollback, want.Scrollback)
	rows("screen", got.Screen, want.Screen)
	rows("main", got.Main, want.Main)
	return b.String()
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
