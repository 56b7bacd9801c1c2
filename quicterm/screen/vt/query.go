package vt

import (
	"bytes"
	"slices"
	"strings"
)

// Whether a terminal answers a sequence is known from xterm's "Control Sequences" and from kitty's and
// iTerm2's extensions.

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

// isControlQuery reports whether a CSI sequence is a query.
func isControlQuery(c *Control) bool {
	marks := marks(c.Prefix, c.Intermediates)
	switch c.Final {
	case 'c': // DA1, DA2, DA3
		return true
	case 'n': // DSR; with > it disables key modifiers
		return c.Prefix != '>'
	case 'x': // DECREQTPARM
		return marks == "" && c.Param(0) <= 1
	case 't': // reports of XTWINOPS
		return marks == "" && slices.Contains([]int{11, 13, 14, 15, 16, 18, 19, 20, 21}, c.Param(0))
	}
	return strings.ContainsAny(marks, queryMarks[c.Final])
}

// isStringQuery reports whether a string is a query. If it is not whole, body is its beginning: then what
// could be a query, and is no image, clipboard or text, is taken for one.
func isStringQuery(kind byte, body string, whole bool) bool {
	body = strings.Map(func(r rune) rune { // as terminals ignore control characters there
		if r < ' ' || r == del {
			return -1
		}
		return r
	}, body)
	switch kind {
	case ']':
		return isCommandQuery(body, whole)
	case 'P':
		return isDeviceQuery(body)
	case '_': // kitty graphics
		keys, ends := imageKeys(body)
		return !whole && keys != nil && !ends || slices.Contains(keys, "a=q")
	}
	return false
}

// isCommandQuery reports whether an OSC is a query: most have a question mark in place of a value.
func isCommandQuery(body string, whole bool) bool {
	number, values, ended := strings.Cut(body, ";")
	if !ended && !whole { // zeros without end
		return true
	}
	switch strings.TrimLeft(number, "0") {
	case "", "1", "2", "7", "8", "9", "66", "133", "633", "777": // titles, links, messages, marks, text
		return false
	case "21": // kitty colours
		return !whole || strings.Contains(values, "=?")
	case "52":
		_, _, text := strings.Cut(values, ";")
		return !whole && !text || strings.Contains(values, "?")
	case "60", "61", "5113", "5522": // XTQALLOWED, XTQDISALLOWED, kitty files and clipboard
		return true
	case "99": // kitty notifications
		metadata, _, _ := strings.Cut(values, ";")
		keys := strings.Split(metadata, ":")
		return !whole || slices.Contains(keys, "p=?") || slices.Contains(keys, "p=alive")
	case "1337":
		begins := func(prefix string) bool { return strings.HasPrefix(values, prefix) }
		if !whole {
			return !begins("File=") && !begins("MultipartFile=") && !begins("FilePart=")
		}
		return begins("Report") || begins("Capabilities") || begins("RequestUpload")
	}
	return !whole || strings.Contains(body, ";?")
}

// isDeviceQuery reports whether a DCS is a query: DECRQSS, XTGETTCAP, XTGETXRES, or kitty's remote control.
func isDeviceQuery(body string) bool {
	function := strings.TrimLeft(body, "0123456789:;<=>?")
	return slices.ContainsFunc([]string{"$q", "+q", "+Q", "@kitty-"}, func(query string) bool {
		return strings.HasPrefix(function, query)
	})
}

// imageKeys returns the keys and values of a command of kitty's graphics protocol, and whether data follows.
func imageKeys(body string) (keys []string, data bool) {
	command, ok := strings.CutPrefix(body, "G")
	if !ok {
		return nil, false
	}
	command, _, data = strings.Cut(command, ";")
	return strings.Split(command, ","), data
}

// Image reports whether a string, or its first part, shows an image where the cursor is: by sixel, by kitty's graphics
// protocol, or by iTerm2's. If it stays, the cursor does.
func Image(kind byte, first []byte) (image, stays bool) {
	switch {
	case kind == 'P':
		return bytes.HasPrefix(bytes.TrimLeft(first, "0123456789;"), []byte("q")), false
	case kind == '_' && bytes.HasPrefix(first, []byte("G")):
		command, _, _ := bytes.Cut(first, []byte(";"))
		keys, _ := imageKeys(string(command))
		image = slices.Contains(keys, "a=T") || slices.Contains(keys, "a=p")
		return image && !slices.Contains(keys, "U=1"), slices.Contains(keys, "C=1")
	case kind == ']' && bytes.HasPrefix(first, []byte("1337;")):
		command, _, _ := bytes.Cut(first[len("1337;"):], []byte(":"))
		name, arguments, _ := strings.Cut(string(command), "=")
		keys := strings.Split(arguments, ";")
		return (name == "File" || name == "MultipartFile") && slices.Contains(keys, "inline=1"),
			slices.Contains(keys, "doNotMoveCursor=1")
	}
	return false, false
}

// silenceImage returns a string, or its beginning, such that the terminal does not report
// whether it could obey: it does for each image that has an id or a number.
func silenceImage(kind byte, body string) string {
	keys, _ := imageKeys(body)
	has := func(key string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, key) })
	}
	if kind != '_' || !has("i=") && !has("I=") || slices.Contains(keys, "q=2") {
		return body
	}
	_, data, found := strings.Cut(body, ";")
	if found {
		data = ";" + data
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return strings.HasPrefix(k, "q=") })
	return "Gq=2," + strings.Join(keys, ",") + data
}
