// Package marks reads what shells tell terminals of their prompts, commands and directories: OSC 133 in the forms of
// FinalTerm, kitty, ghostty and fish, OSC 633 of VS Code, OSC 7, and OSC 1337 of iTerm2; and the notifications of
// programs. All of that is what a program says, and proves nothing.
package marks

import (
	"net/url"
	"strconv"
	"strings"
)

// A Kind is what begins or ends at a mark.
type Kind byte

// The kinds. 0 is no mark.
const (
	Prompt Kind = 'A' // a prompt begins
	Input  Kind = 'B' // the person edits a command
	Output Kind = 'C' // the output of the command begins
	End    Kind = 'D' // the command has ended
)

// A Mark is a mark of a shell.
type Mark struct {
	Kind   Kind
	Status int // exit status of a command that has ended, from 0 to 255; -1 if it is not known
}

// Parse returns the mark that an OSC 133 or 633 with this text is, or the zero Mark. Marks of continued lines and of
// prompts at the right are none.
func Parse(text string) Mark {
	kind, options, _ := strings.Cut(text, ";")
	m := Mark{Status: -1}
	switch kind {
	case "A", "N", "P": // N also ends a command; P is a prompt that does not begin a new line
		m.Kind = Prompt
		for o := range strings.SplitSeq(options, ";") {
			if of, found := strings.CutPrefix(o, "k="); found && of != "i" || strings.HasPrefix(o, "Cwd=") {
				return Mark{}
			}
		}
	case "B", "I": // I is input that ends with the line
		m.Kind = Input
	case "C":
		m.Kind = Output
	case "D":
		m.Kind = End
		status, _, _ := strings.Cut(options, ";")
		if n, err := strconv.ParseUint(status, 10, 8); err == nil {
			m.Status = int(n)
		}
	default:
		return Mark{}
	}
	return m
}

// Notification returns the text that an OSC with this number has for the user: OSC 9 of iTerm2, which is a progress bar
// with "4;", OSC 777 of urxvt, and OSC 99 of kitty.
func Notification(number, text string) (notification string, ok bool) {
	switch number {
	case "9":
		return text, !strings.HasPrefix(text, "4;")
	case "777":
		text, ok = strings.CutPrefix(text, "notify;")
		return strings.ReplaceAll(text, ";", ": "), ok
	case "99":
		_, text, ok = strings.Cut(text, ";")
		return text, ok
	}
	return "", false
}

// Line returns the command line that an OSC 133 or 633 with this text tells: with C, in the form of fish and kitty, or
// VS Code's E.
func Line(text string) (line string, told bool) {
	kind, options, _ := strings.Cut(text, ";")
	switch kind {
	case "C":
		for o := range strings.SplitSeq(options, ";") {
			if escaped, found := strings.CutPrefix(o, "cmdline_url="); found {
				line, err := url.PathUnescape(escaped)
				return line, err == nil
			}
		}
		_, quoted, found := strings.Cut(";"+options, ";cmdline=") // which may have semicolons
		return unquote(quoted), found
	case "E":
		line, _, _ := strings.Cut(options, ";")
		return unescape(line), true
	}
	return "", false
}

// Directory returns the directory of a shell, as OSC 7 gives it, after an OSC with this number and text. before is the
// one until then.
func Directory(before string, number int, text string) string {
	if number == 7 {
		return text
	}
	property, found := text, number == 1337
	if number == 633 {
		property, found = strings.CutPrefix(text, "P;")
	}
	name, value, _ := strings.Cut(property, "=")
	u, err := url.Parse(before)
	if err != nil || u.Scheme != "file" {
		u = &url.URL{Scheme: "file"}
	}
	switch {
	case !found:
		return before
	case name == "RemoteHost":
		_, host, _ := strings.Cut(value, "@")
		return (&url.URL{Scheme: "file", Host: host, Path: u.Path}).String()
	case name == "CurrentDir":
	case name == "Cwd":
		value = unescape(value)
	default:
		return before
	}
	return (&url.URL{Scheme: "file", Host: u.Host, Path: value}).String()
}

// unquote undoes how printf %q of a shell quotes a text: with backslashes, or as $'...'.
func unquote(quoted string) string {
	inner, escapes := strings.CutPrefix(quoted, "$'")
	if escapes {
		quoted = strings.TrimSuffix(inner, "'")
	}
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		c := quoted[i]
		if c == '\\' && i+1 < len(quoted) {
			i++
			if c = quoted[i]; escapes && (c == 'n' || c == 't') {
				c = ' '
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// unescape decodes a value of VS Code's: \\ is a backslash, and \x3b a semicolon.
func unescape(value string) string {
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if rest := value[i:]; len(rest) >= 4 && rest[:2] == `\x` {
			if c, err := strconv.ParseUint(rest[2:4], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		} else if strings.HasPrefix(rest, `\\`) {
			i++
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// Path returns the host and the path of a directory that OSC 7 has given; the host may be empty. Without a
// directory, it returns neither.
func Path(directory string) (host, path string) {
	u, err := url.Parse(directory)
	if err != nil || !strings.HasPrefix(u.Path, "/") {
		return "", ""
	}
	return u.Host, u.Path
}
