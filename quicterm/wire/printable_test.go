package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"größe, 終了 😀":                      "größe, 終了 😀",
		"\x1b]0;t\a\x1b[2J\x00":            "?]0;t??[2J?",
		"a\r\nb\tc\x7f":                    "a  b c?",
		"\u009b6n\u0085\u009d":             "?6n ?", // C1, in UTF-8
		"\x9b6n\xff\xc3":                   "?6n??", // and as bytes
		"ann\u202eexe.\u2066x\u200f\u061c": "ann?exe.?x??",
		"zero\u200bwidth\ufeff\u00ad":      "zero?width??",
		"line\u2028paragraph\u2029":        "line paragraph ",
		"private \ue000\U000f0000":         "private ??",
		strings.Repeat("x", 41):            strings.Repeat("x", 40),
		strings.Repeat("x", 39) + "é":      strings.Repeat("x", 39),
	} {
		if got := Printable(text, 40); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b]0;t\a é\u202e\x9b\xff", 9)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(limit, 0)
		got := Printable(text, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Errorf("Printable(%q, %d) = %q", text, limit, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q is left of %q", r, text)
			}
		}
		if again := Printable(got, limit); again != got {
			t.Errorf("%q becomes %q, and that %q", text, got, again)
		}
	})
}

// Every text of a message is printable once it is decoded, except those that name or run
// something: these are kept byte by byte, and nobody prints them raw.
func TestTextsAreDecodedPrintable(t *testing.T) {
	kept := []string{
		"Hello.User", "Attach.Session", "Clear.Session", "Dial.Host", "Dial.Path", "Listen.Host", "Listen.Path", "Attach.Env", "Appeared.Scope", "Attach.Command", "Attach.Dir",
		"Kill.Others", "Kill.Session", "Rename.Session", "Rename.Name", "Open.Scope", "Open.Account", "Resumed.Account", "Resumed.Scope",
		"State.Name", "Enroll.Session",
	}
	const evil = "\x1b]0;\u202e\x9b"
	var raw []string
	check := func(v, decoded reflect.Value) {
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			for _, s := range texts(decoded.Field(i)) {
				if s == evil && !slices.Contains(raw, name) {
					raw = append(raw, name)
				}
			}
		}
	}
	for _, g := range goldenBodies {
		switch g.body.(type) {
		case *Ask, *Grant, *Launch:
			continue // of this machine, and of the same account or root
		}
		v := reflect.ValueOf(empty(g.body)).Elem()
		fill(v, evil)
		m, err := New(v.Addr().Interface().(Body))
		if err != nil {
			t.Fatalf("%T: %v", g.body, err)
		}
		decoded := empty(g.body)
		if err := m.Decode(decoded); err != nil {
			t.Fatalf("%T: %v", g.body, err)
		}
		check(v, reflect.ValueOf(decoded).Elem())
	}
	info := Info{}
	fill(reflect.ValueOf(&info).Elem(), evil)
	b, err := EncodeInfo(info)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := DecodeInfo(b)
	if err != nil {
		t.Fatal(err)
	}
	check(reflect.ValueOf(info), reflect.ValueOf(decoded))
	slices.Sort(raw)
	slices.Sort(kept)
	if !slices.Equal(raw, kept) {
		t.Errorf("decoded as they are: %q, want %q", raw, kept)
	}
	long := &Error{Text: strings.Repeat("x", MaxMessage-100)}
	m, err := New(long)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Decode(long); err != nil || len(long.Text) != maxText {
		t.Errorf("a text of %d bytes, %v; want %d", len(long.Text), err, maxText)
	}
}

// fill sets every text of a struct.
func fill(v reflect.Value, text string) {
	for i := range v.NumField() {
		switch p := v.Field(i).Addr().Interface().(type) {
		case *string:
			*p = text
		case *[]string:
			*p = []string{text}
		case *[][2]string:
			*p = [][2]string{{text, text}}
		case *[]Member:
			*p = []Member{{Client: text}}
		}
	}
}

// texts returns the texts of a field.
func texts(v reflect.Value) []string {
	switch v := v.Interface().(type) {
	case string:
		return []string{v}
	case []string:
		return v
	case [][2]string:
		return v[0][:]
	case []Member:
		return []string{v[0].Client}
	}
	return nil
}
