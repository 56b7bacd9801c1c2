package wire

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of texts for people, in bytes. Decoding cuts longer ones.
const (
	MaxClient = 255  // account@address; a Sizing has one byte for the length
	maxText   = 1024 // of an error: a few lines on a terminal
)

// Printable returns text of a peer for a terminal or a log: one line of at most limit bytes, in which nothing
// controls the terminal or changes the order of what is shown. White space becomes a space, and any other character
// that cannot be printed a question mark: control characters (C0, DEL, C1), format characters such as those for the
// direction of writing, and invalid UTF-8. It allocates nothing for text that needs no change.
//
// The decoders of this package apply it to each text that people see, so that nobody else has to.
func Printable(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?' // also of invalid UTF-8
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return '?'
	}, s)
}

// textLimits are the limits of texts that people see, by the tag "text" of a field: decoding makes these printable.
var textLimits = map[string]int{
	"name": MaxName, "machine": MaxMachine, "client": MaxClient, "summary": MaxSummary, "error": maxText, "dir": MaxDir,
}

// makePrintable makes the texts of a decoded struct printable, and of those that it has.
func makePrintable(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			makePrintable(v.Elem())
		}
	case reflect.Slice:
		for i := 0; v.Type().Elem().Kind() == reflect.Struct && i < v.Len(); i++ {
			makePrintable(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if limit, is := textLimits[v.Type().Field(i).Tag.Get("text")]; is {
				v.Field(i).SetString(Printable(v.Field(i).String(), limit))
			} else {
				makePrintable(v.Field(i))
			}
		}
	}
}
