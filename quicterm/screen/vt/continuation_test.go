package vt

import (
	"strings"
	"testing"
)

// ignored obeys nothing.
type ignored struct{}

func (ignored) Print([]byte)              {}
func (ignored) Rune(rune)                 {}
func (ignored) Broken([]byte)             {}
func (ignored) Execute(byte)              {}
func (ignored) Escape(uint16, byte)       {}
func (ignored) Control(*Control)          {}
func (ignored) String(byte, []byte, Part) {}

// The continuation brings another parser to the same state, without executing anything twice.
func TestContinuation(t *testing.T) {
	long := strings.Repeat("A", 5000)
	tests := []struct {
		why, output, want string
		cut               bool
	}{
		{"text", "text\x1b[m", "", false},
		{"CSI", "text\x1b[1;3", "\x1b[1;3", false},
		{"CSI after one that is broken off", "\x1b[1\x1b[2", "\x1b[2", false},
		{"a line feed within CSI", "\x1b[1\n;\r3", "\x1b[1;3", false},
		{"CSI as one character", "\u009b1", "\x1b[1", false},
		{"OSC", "\x1b]0;ti", "\x1b]0;ti", false},
		{"OSC as one character", "\u009d0;ti", "\x1b]0;ti", false},
		{"a tab within OSC", "\x1b]0;\tti", "\x1b]0;\tti", false},
		{"a tab before the kind of a string", "\x1b\t]0;ti", "\x1b]0;ti", false},
		{"the end of a string has begun", "\x1b]0;ti\x1b", "\x1b", false},
		{"a character", "a\xe6\xbc", "\xe6\xbc", false},
		{"a character in a string", "\x1b]0;\xe6\xbc", "\x1b]0;\xe6\xbc", false},
		{"bytes that are a character only without the line feed", "\x1b[\xd2\n\x80", "\x1b[\xd2\x7f\x80", false},
		{"a long string", "\x1b]52;" + long, ("\x1b]52;" + long)[:maxRaw], true},
		{"after a long string", "\x1b]52;" + long + "\a\x1b[1", "\x1b[1", false},
	}
	for _, test := range tests {
		for _, size := range []int{len(test.output), 1, 2, 3} {
			var p Parser
			for i := 0; i < len(test.output); i += size {
				p.Parse([]byte(test.output[i:min(i+size, len(test.output))]), ignored{})
			}
			if got, whole := p.Continuation(); string(got) != test.want || whole == test.cut {
				t.Errorf("%s, by %d: %.40q, whole %v, want %.40q", test.why, size, got, whole, test.want)
			}
		}
	}
}
