package version

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A number is a version as semver.org has it.
type number struct {
	parts [3]uint64
	pre   string // behind the first dash
}

// parse reads major.minor.patch and what may follow it, with or without a v. Missing parts are 0.
func parse(text string) (n number, ok bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	text, n.pre, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if len(parts) > len(n.parts) {
		return n, false
	}
	for i, part := range parts {
		var err error
		if n.parts[i], err = strconv.ParseUint(part, 10, 32); err != nil {
			return n, false
		}
	}
	return n, true
}

// Valid reports whether a text is the version of a release, or of what was built between two.
func Valid(text string) bool {
	_, ok := parse(text)
	return ok
}

// Older reports whether a version is older than another one. One that is not [Valid], as that of a build
// without a version, counts as older.
func Older(text, than string) bool {
	a, ok := parse(text)
	b, _ := parse(than)
	switch c := slices.Compare(a.parts[:], b.parts[:]); {
	case !ok:
		return true
	case c != 0 || a.pre == b.pre:
		return c < 0
	case a.pre == "" || b.pre == "": // what was built before a release is older than that
		return a.pre != ""
	}
	return comparePre(a.pre, b.pre) < 0
}

// comparePre compares what follows a dash, of which parts that are numbers count as such.
func comparePre(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, errX := strconv.ParseUint(x, 10, 64)
		n, errY := strconv.ParseUint(y, 10, 64)
		switch {
		case errX == nil && errY == nil:
			return cmp.Compare(m, n)
		case errX == nil:
			return -1
		case errY == nil:
			return 1
		}
		return strings.Compare(x, y)
	})
}
