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
	"sgr_colon": "38:2:r:g:b without a colour space is a colour, as in xterm and most terminals; xterm.js takes r for the space",
	"slrm":      "xterm.js has no left and right margins",
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
		name := strings.TrimSuffix(filepath.Base(file), ".raw")
		ok := t.Run(name, func(t *testing.T) {
			raw := read(t, file)
			var want Dump
			if err := json.Unmarshal(read(t, strings.TrimSuffix(file, "raw")+"json"), &want); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(5) {
				s := New(want.Cols, want.Rows, Limits{Lines: 5000, Bytes: 64 << 20})
				for _, chunk := range cut(raw, seed) {
					s.Write(chunk)
				}
				diff := compare(s.Dump(), want)
				if why, known := differences[name]; known {
					if diff == "" {
						t.Errorf("no longer different: remove it from the list (%s)", why)
					}
					return
				}
				if diff != "" {
					t.Fatalf("chunks %d: %s", seed, diff)
				}
			}
		})
		if _, known := differences[name]; ok && !known {
			exact++
		}
	}
	t.Logf("%d of %d recordings are exact", exact, len(files))
	if exact*100 < len(files)*96 {
		t.Errorf("%d of %d recordings are exact, want 97 %%", exact, len(files))
	}
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
