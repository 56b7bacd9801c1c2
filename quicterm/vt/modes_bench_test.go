package vt

import (
	"strings"
	"testing"
)

// Output with many colours, as of ls --color and compilers.
func BenchmarkObserve(b *testing.B) {
	line := "\x1b[01;34mdirectory\x1b[0m  \x1b[38;5;208mfile.go\x1b[0m:\x1b[1m12\x1b[22m \x1b[38;2;10;20;30mtext\x1b[39m\x1b[K\r\n"
	output := []byte(strings.Repeat(line, 500))
	var s Splitter
	var m Modes
	b.SetBytes(int64(len(output)))
	b.ReportAllocs()
	for b.Loop() {
		s.Split(output, func([]byte) {}, m.Observe)
	}
}
