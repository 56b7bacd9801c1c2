package configs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// A Wrong is the error of a setting whose value has the right type and cannot be.
type Wrong struct {
	Key     string // as in the file; after the name of its table and a dot, if it is in one
	Element int    // of a list, from 0; negative if it is not about one
	Err     error  // names the setting
}

func (w *Wrong) Error() string { return w.Err.Error() }
func (w *Wrong) Unwrap() error { return w.Err }

// wrongf returns the error of a setting as a whole.
func wrongf(key, format string, args ...any) error {
	return &Wrong{key, -1, fmt.Errorf(format, args...)}
}

// element returns the error of a setting as one of an element of it, or nil.
func element(i int, err error) error {
	if w, ok := errors.AsType[*Wrong](err); ok {
		w.Element = i
	}
	return err
}

// A place is where a setting is in a file.
type place struct {
	key      string
	value    int   // where it begins, in bytes
	elements []int // the same of those of a list

	table, text string // the table that it is in, or nothing, and what sets it
}

// places returns where the settings of a file are, which the parser has accepted.
func places(content string) (found []place) {
	p := new(unstable.Parser)
	p.Reset([]byte(content))
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		var names []string
		end := 0
		for key := e.Key(); key.Next(); {
			n := key.Node()
			names, end = append(names, string(n.Data)), int(n.Raw.Offset+n.Raw.Length)
		}
		name := strings.Join(names, ".")
		if e.Kind == unstable.Table {
			table = name
		}
		if e.Kind != unstable.KeyValue {
			continue
		}
		one := place{key: name, table: table, text: string(p.Raw(e.Raw))}
		if table != "" {
			one.key = table + "." + name
		}
		rest := content[end:]
		one.value = end + len(rest) - len(strings.TrimLeft(rest, " \t="))
		if v := e.Value(); v.Kind == unstable.Array {
			for children := v.Children(); children.Next(); {
				one.elements = append(one.elements, int(children.Node().Raw.Offset))
			}
		}
		found = append(found, one)
	}
	return found
}

// where returns the line and the column of an offset, each after a colon.
func where(content string, offset int) string {
	before := content[:offset]
	return fmt.Sprintf(":%d:%d", strings.Count(before, "\n")+1, offset-strings.LastIndexByte(before, '\n'))
}

// locate returns an error with the place of the setting that it is about in front, if the file has that. It is to
// follow the name of the file.
func locate(content string, err error) error {
	w, ok := errors.AsType[*Wrong](err)
	if !ok {
		return fmt.Errorf(": %w", err)
	}
	for _, at := range places(content) {
		if at.key != w.Key {
			continue
		}
		offset := at.value
		if w.Element >= 0 && w.Element < len(at.elements) {
			offset = at.elements[w.Element]
		}
		return fmt.Errorf("%s: %w", where(content, offset), err)
	}
	return fmt.Errorf(": %w", err)
}
