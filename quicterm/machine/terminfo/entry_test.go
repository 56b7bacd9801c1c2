package terminfo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t testing.TB, b []byte) *Entry {
	t.Helper()
	e, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func encode(t testing.TB, e *Entry) []byte {
	t.Helper()
	b, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What tic has compiled from testdata/entries.ti.
func TestGolden(t *testing.T) {
	narrow, wide := read(t, "testdata/narrow"), read(t, "testdata/wide")
	e := decode(t, narrow)
	if !slices.Equal(e.Names, []string{"quicterm-narrow", "qtn", "a made up terminal of tests"}) {
		t.Errorf("names %q", e.Names)
	}
	if !e.Is("qtn") || !e.Is("quicterm-narrow") || e.Is("a made up terminal of tests") || e.Is("") {
		t.Error("it has other names")
	}
	s, x := e.Standard, e.Extended
	if !slices.Equal(s.Bools, []int8{0, 1}) || !slices.Equal(s.Numbers, []int32{80, Absent, Cancelled}) {
		t.Errorf("booleans %d, numbers %d", s.Bools, s.Numbers)
	}
	for i, want := range map[int]String{
		0: {State: Absent}, 1: {Text: "\a"}, 2: {State: Cancelled}, 10: {Text: "\x1b[%i%p1%d;%p2%dH"},
		51: {Text: "/etc/if"}, 125: {Text: "/etc/rf"}, 138: {Text: "/bin/iprog"},
	} {
		if s.Strings[i] != want {
			t.Errorf("string %d is %+v, want %+v", i, s.Strings[i], want)
		}
	}
	if !slices.Equal(e.Labels, []string{"XT", "Qq", "Sm", "Smulx", "TS", "Zz", "kUP5"}) {
		t.Errorf("labels %q", e.Labels)
	}
	if want := []String{
		{State: Cancelled}, {Text: "\x1b[4:%p1%dm"}, {Text: "\x1b]0;"}, {State: Cancelled}, {Text: "\x1b[1;5A"},
	}; !slices.Equal(x.Bools, []int8{1}) || !slices.Equal(x.Numbers, []int32{3}) || !slices.Equal(x.Strings, want) {
		t.Errorf("extended %+v", x)
	}
	w := decode(t, wide)
	if !slices.Contains(w.Standard.Numbers, 1<<24) || !slices.Contains(w.Standard.Numbers, 1<<31-1) {
		t.Errorf("numbers %d", w.Standard.Numbers)
	}
	if !bytes.Equal(encode(t, e), narrow) || !bytes.Equal(encode(t, w), wide) {
		t.Error("they are not written as they were")
	}
	e.Detach()
	again := encode(t, e)
	for _, file := range []string{"/etc/if", "/etc/rf", "/bin/iprog"} {
		if bytes.Contains(again, []byte(file)) {
			t.Errorf("%s is left", file)
		}
	}
}

// Each entry of this system is written such that infocmp, if it is there, sees no difference.
func TestSystemEntries(t *testing.T) {
	files, _ := filepath.Glob("/usr/share/terminfo/*/*")
	infocmp, _ := exec.LookPath("infocmp")
	shown := func(dir, name string) string {
		out, err := exec.Command(infocmp, "-x", "-1", "-A", dir, name).Output()
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(out), "\n") // below the name of the file
		return text
	}
	dir := t.TempDir()
	for i, file := range files {
		b := read(t, file)
		e := decode(t, b)
		again := encode(t, e)
		if !reflect.DeepEqual(decode(t, again), e) {
			t.Errorf("%s is another entry afterwards", file)
		}
		if bytes.Equal(again, b) && i%100 != 0 || infocmp == "" {
			continue
		}
		for _, path := range Paths(filepath.Base(file)) {
			os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700)
			if err := os.WriteFile(filepath.Join(dir, path), again, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		name := filepath.Base(file)
		if before, after := shown("/usr/share/terminfo", name), shown(dir, name); after != before {
			t.Errorf("infocmp shows of %s before:\n%s\nafter:\n%s", name, before, after)
		}
	}
}

func TestTruncatedAtEachByte(t *testing.T) {
	for _, file := range []string{"testdata/narrow", "testdata/wide"} {
		b := read(t, file)
		whole := decode(t, b)
		standard := *whole
		standard.Extended, standard.Labels = Capabilities{}, nil
		ends := len(encode(t, &standard)) // an entry that has no extended part ends here, with 9 bytes behind at most
		for n := range b {
			e, err := Decode(b[:n])
			if without := n >= ends && n < ends+ends%2+10; (err == nil) != without {
				t.Errorf("%s, the first %d bytes: %v", file, n, err)
			} else if err == nil && !reflect.DeepEqual(e, &standard) {
				t.Errorf("%s, the first %d bytes are %+v", file, n, e)
			}
		}
	}
}

// change returns the narrow entry with another 16-bit number at an offset.
func change(t *testing.T, at int, value int) []byte {
	b := read(t, "testdata/narrow")
	binary.LittleEndian.PutUint16(b[at:], uint16(value))
	return b
}

func TestRefused(t *testing.T) {
	const header, names, bools, numbers = 12, 48, 2, 3
	at := header + names + bools + (names+bools)%2 + numbers*2
	named := func(names ...string) []byte { return rawEntry(strings.Join(names, "|") + "\x00") }
	for name, c := range map[string]struct {
		b    []byte
		want error // nil for any
	}{
		"nothing":                        {nil, errMagic},
		"another format":                 {change(t, 0, 0o433), errMagic},
		"a negative count":               {change(t, 2, -1), errEnd},
		"more names than there is":       {change(t, 2, 10000), errEnd},
		"names without an end":           {change(t, 2, names-2), nil},
		"more booleans than there are":   {change(t, 4, maxBools+1), errCount},
		"more numbers than there are":    {change(t, 6, maxNumbers+1), errCount},
		"more strings than there are":    {change(t, 8, maxStrings+1), errCount},
		"a table behind the end":         {change(t, 10, 32000), errEnd},
		"a boolean of 2":                 {change(t, header+names, 2), errValue},
		"a number of -3":                 {change(t, at-numbers*2, -3), errValue},
		"a string before the table":      {change(t, at, -3), errOffset},
		"a string behind the table":      {change(t, at, 10000), errOffset},
		"a string without an end":        {append(rawEntry("x\x00", 0), "abc"...), nil},
		"no name":                        {named(""), nil},
		"a path":                         {named("../../etc/passwd"), nil},
		"a hidden file":                  {named(".."), nil},
		"an alias with a slash":          {named("x", "a/b", "description"), nil},
		"a description that is not text": {named("x", "\x1b[31m"), nil},
		"a long name":                    {named(strings.Repeat("x", maxName+1)), nil},
		"long names":                     {named("x", strings.Repeat("y", maxNames)), nil},
		"a long entry":                   {make([]byte, MaxSize+1), nil},
		"strings that share their bytes": {shared(), nil},
	} {
		if e, err := Decode(c.b); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := Decode(rawEntry("x\x00", 0)); err == nil {
		t.Error("a string in an empty table was accepted")
	}
}

// rawEntry returns an entry with names and strings at offsets, and an empty table.
func rawEntry(names string, offsets ...int) []byte {
	w := writer{}
	w.shorts(magic16, len(names), 0, 0, len(offsets), 0)
	w.b = append(w.b, names...)
	w.align()
	w.shorts(offsets...)
	return w.b
}

// shared returns an entry whose strings would take 400 times as much if they did not share the table.
func shared() []byte {
	table := bytes.Repeat([]byte("x"), 30000)
	b := append(rawEntry("x\x00", make([]int, 400)...), table...)
	b[len(b)-1] = 0
	binary.LittleEndian.PutUint16(b[10:], uint16(len(table)))
	return b
}

// What is accepted can be encoded, within the bounds, and is the same afterwards.
func FuzzDecode(f *testing.F) {
	for _, file := range []string{"testdata/narrow", "testdata/wide"} {
		f.Add(read(f, file))
	}
	f.Add(rawEntry("x|y\x00", -1, -2))
	f.Add(shared())
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := Decode(b)
		if err != nil {
			return
		}
		again := encode(t, e)
		if len(again) > MaxSize {
			t.Fatalf("%d bytes", len(again))
		}
		if got := decode(t, again); !reflect.DeepEqual(got, e) {
			t.Errorf("decoded %+v, and after encoding %+v", e, got)
		}
		for _, name := range e.Names[:max(len(e.Names)-1, 1)] {
			if name == "" || strings.ContainsAny(name, "/\x00") || !e.Is(name) {
				t.Errorf("it has the name %q", name)
			}
		}
	})
}
