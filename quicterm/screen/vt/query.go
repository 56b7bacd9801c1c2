package vt

import (
	"bytes"
	"slices"
	"strings"
)

// enq asks a terminal for its answerback message.
const enq = 0x05

// isQuery reports whether a terminal answers a sequence. It knows the queries of
// xterm's "Control Sequences" and of kitty's and iTerm2's extensions.
func isQuery(sequence []byte) bool {
	kind, body := parse(sequence)
	switch kind {
	case 'Z': // DECID
		return true
	case '[':
		return isControlQuery(body)
	case ']':
		return isCommandQuery(body)
	case 'P':
		return isDeviceQuery(body)
	case '_': // kitty graphics
		keys, ok := imageKeys(body)
		return ok && slices.Contains(keys, "a=q")
	}
	return false
}

// isLongQuery decides as isQuery about a sequence of which only the beginning is known. What
// could be a query, and is no image, clipboard or text, is taken for one.
func isLongQuery(beginning []byte) bool {
	kind, body := parse(beginning)
	switch kind {
	case ']':
		number, values, _ := strings.Cut(body, ";")
		switch strings.TrimLeft(number, "0") {
		case "52":
			return strings.Contains(values, "?")
		case "1337":
			return !strings.HasPrefix(values, "File=") && !strings.HasPrefix(values, "MultipartFile=") &&
				!strings.HasPrefix(values, "FilePart=")
		}
		return !isText(number)
	case 'P':
		return isDeviceQuery(body)
	case '_':
		return strings.HasPrefix(body, "G") && !strings.Contains(body, ";") || isQuery(beginning)
	case '^', 'X': // they have no meaning
		return false
	}
	return true
}

// parse returns the byte after ESC and the rest of a sequence, without control characters,
// which terminals ignore there or obey as if they came before, and without its end.
func parse(sequence []byte) (kind byte, body string) {
	visible := bytes.Map(func(r rune) rune {
		if r < ' ' || r == del {
			return -1
		}
		return r
	}, bytes.TrimSuffix(sequence, []byte("\x1b\\")))
	if len(visible) == 0 {
		return 0, ""
	}
	return visible[0], string(visible[1:])
}

// cutFunction splits a control function (ECMA-48, 5.4) into its private prefix, its first
// parameter without leading zeros, its intermediate bytes, its final byte and what follows.
func cutFunction(body string) (prefix, first, intermediates string, final byte, rest string) {
	span := func(from, to byte) string {
		n := 0
		for n < len(body) && body[n] >= from && body[n] <= to {
			n++
		}
		cut := body[:n]
		body = body[n:]
		return cut
	}
	prefix = span('<', '?')
	first, _, _ = strings.Cut(span('0', '?'), ";")
	first, _, _ = strings.Cut(first, ":")
	intermediates = span(' ', '/')
	if body != "" {
		final, rest = body[0], body[1:]
	}
	return prefix, strings.TrimLeft(first, "0"), intermediates, final, rest
}

// queryMarks are the prefixes and intermediate bytes that make a CSI sequence a query, by its final byte.
var queryMarks = map[byte]string{
	'p': "$",           // DECRQM
	'q': ">",           // XTVERSION
	'm': "?", 'g': "?", // XTQMODKEYS, XTQFMTKEYS
	'u': "?&$",           // kitty keyboard flags, DECRQUPSS, DECRQTSR
	'v': `"`,             // DECRQDE
	'R': "#",             // XTREPORTCOLORS
	'S': "?#",            // XTSMGRAPHICS, XTTITLEPOS
	'w': "$*", 'y': "$*", // DECRQPSR, DECRQCRA
	'|': "#'", // XTREPORTSGR, DECRQLP
}

// isControlQuery reports whether a CSI sequence, given without ESC [, is a query.
func isControlQuery(body string) bool {
	prefix, first, intermediates, final, _ := cutFunction(body)
	marks := prefix + intermediates
	switch final {
	case 'c': // DA1, DA2, DA3
		return true
	case 'n': // DSR; with > it disables key modifiers
		return prefix != ">"
	case 'x': // DECREQTPARM
		return marks == "" && (first == "" || first == "1")
	case 't': // reports of XTWINOPS
		return marks == "" && slices.Contains([]string{"11", "13", "14", "15", "16", "18", "19", "20", "21"}, first)
	}
	return strings.ContainsAny(marks, queryMarks[final])
}

// isText reports whether an OSC of a number holds text that may contain question marks: a
// title, a link, a message, a mark of a shell, or text itself.
func isText(number string) bool {
	switch strings.TrimLeft(number, "0") {
	case "", "1", "2", "7", "8", "9", "66", "133", "633", "777":
		return true
	}
	return false
}

// isCommandQuery reports whether an OSC is a query: most have a question mark in
// place of a value.
func isCommandQuery(body string) bool {
	number, values, _ := strings.Cut(body, ";")
	if isText(number) {
		return false
	}
	switch strings.TrimLeft(number, "0") {
	case "21": // kitty colours
		return strings.Contains(values, "=?")
	case "60", "61", "5113", "5522": // XTQALLOWED, XTQDISALLOWED, kitty files and clipboard
		return true
	case "99": // kitty notifications
		metadata, _, _ := strings.Cut(values, ";")
		keys := strings.Split(metadata, ":")
		return slices.Contains(keys, "p=?") || slices.Contains(keys, "p=alive")
	case "1337":
		return strings.HasPrefix(values, "Report") || strings.HasPrefix(values, "Capabilities") ||
			strings.HasPrefix(values, "RequestUpload")
	}
	return strings.Contains(body, ";?")
}

// isDeviceQuery reports whether a DCS, given without ESC P, is a query.
func isDeviceQuery(body string) bool {
	_, _, intermediates, final, rest := cutFunction(body)
	switch intermediates + string(final) {
	case "$q", "+q", "+Q": // DECRQSS, XTGETTCAP, XTGETXRES
		return true
	case "@": // kitty's remote control
		return strings.HasPrefix(rest, "kitty-")
	}
	return false
}

// imageKeys returns the keys and values of a command of kitty's graphics protocol.
func imageKeys(body string) (keys []string, ok bool) {
	command, ok := strings.CutPrefix(body, "G")
	if !ok {
		return nil, false
	}
	command, _, _ = strings.Cut(command, ";")
	return strings.Split(command, ","), true
}

// silenceImage returns a sequence, or its beginning, such that the terminal does not report
// whether it could obey: it does for each image that has an id or a number.
func silenceImage(sequence []byte) []byte {
	kind, body := parse(sequence)
	keys, ok := imageKeys(body)
	cancelled := bytes.HasSuffix(sequence, []byte{can}) || bytes.HasSuffix(sequence, []byte{sub})
	if kind != '_' || !ok || cancelled || slices.Contains(keys, "q=2") {
		return sequence
	}
	has := func(key string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, key) })
	}
	if !has("i=") && !has("I=") {
		return sequence
	}
	keys = append([]string{"q=2"}, slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "q=") })...)
	_, data, found := bytes.Cut(sequence, []byte(";"))
	silent := []byte("\x1b_G" + strings.Join(keys, ","))
	switch {
	case found:
		return append(append(silent, ';'), data...)
	case bytes.HasSuffix(sequence, []byte("\x1b\\")):
		return append(silent, "\x1b\\"...)
	}
	return silent
}
