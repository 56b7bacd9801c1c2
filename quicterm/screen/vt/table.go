package vt

// A phase is a state of the parser: where in a control sequence the output is.
type phase uint8

const (
	inText                phase = iota // outside of control sequences
	inEscape                           // after ESC
	inEscapeIntermediate               // after ESC and intermediate bytes
	inControl                          // after CSI
	inControlParameters                // after CSI and parameter bytes
	inControlIntermediate              // after intermediate bytes of CSI
	inControlIgnored                   // in a malformed CSI sequence, up to its final byte
	inCommand                          // in an OSC string
	inDevice                           // in a DCS string
	inOther                            // in an APC, PM or SOS string
	phases
)

// An action is what the parser does with a character.
type action uint8

const (
	ignore action = iota
	printChar
	execute
	begin           // a sequence
	gather          // an intermediate byte or a private prefix
	parameter       // a byte of the parameters
	dispatchEscape  // call Handler.Escape
	dispatchControl // call Handler.Control
	beginString
	put       // a character of a string
	endString // and call Handler.String
)

// A transition is the action and the next phase for a character.
type transition struct {
	action action
	next   phase
}

// wideChar stands in the table for all characters above the C1 control characters.
const wideChar = 0xa0

// table is the state machine of DEC's terminals (vt100.net/emu/dec_ansi_parser), with
// sub-parameters, with BEL as an end of OSC, and with C1 control characters in UTF-8.
var table = makeTable()

func makeTable() (t [phases][wideChar + 1]transition) {
	set := func(p phase, from, to int, a action, next phase) {
		for c := from; c <= to; c++ {
			t[p][c] = transition{a, next}
		}
	}
	for p := range phases {
		inString := p == inCommand || p == inDevice || p == inOther
		// A character that has no meaning in a phase ends the sequence.
		set(p, 0, wideChar, ignore, inText)
		if inString {
			set(p, 0, wideChar, put, p)
		}
		abort := action(execute)
		if inString {
			abort = endString
		}
		set(p, can, can, abort, inText)
		set(p, sub, sub, abort, inText)
		set(p, 0x80, 0x9f, abort, inText)
		if !inString {
			set(p, 0x9c, 0x9c, ignore, inText) // ST
			set(p, 0x90, 0x90, beginString, inDevice)
			set(p, 0x98, 0x98, beginString, inOther)
			set(p, 0x9b, 0x9b, begin, inControl)
			set(p, 0x9d, 0x9d, beginString, inCommand)
			set(p, 0x9e, 0x9f, beginString, inOther)
			set(p, esc, esc, begin, inEscape)
			for _, c := range [][2]int{{0, can - 1}, {can + 1, can + 1}, {esc + 1, 0x1f}} {
				set(p, c[0], c[1], execute, p)
			}
			set(p, del, del, ignore, p)
		} else {
			set(p, esc, esc, endString, inEscape)
		}
	}
	set(inText, ' ', '~', printChar, inText)
	set(inText, wideChar, wideChar, printChar, inText)

	set(inEscape, '0', '~', dispatchEscape, inText)
	set(inEscape, ' ', '/', gather, inEscapeIntermediate)
	set(inEscape, '[', '[', begin, inControl)
	set(inEscape, ']', ']', beginString, inCommand)
	set(inEscape, 'P', 'P', beginString, inDevice)
	for _, c := range "X^_" {
		set(inEscape, int(c), int(c), beginString, inOther)
	}
	set(inEscapeIntermediate, ' ', '/', gather, inEscapeIntermediate)
	set(inEscapeIntermediate, '0', '~', dispatchEscape, inText)

	for _, p := range []phase{inControl, inControlParameters, inControlIntermediate} {
		set(p, '0', '?', ignore, inControlIgnored)
		set(p, ' ', '/', gather, inControlIntermediate)
		set(p, '@', '~', dispatchControl, inText)
	}
	set(inControl, '0', ';', parameter, inControlParameters)
	set(inControlParameters, '0', ';', parameter, inControlParameters)
	set(inControl, '<', '?', gather, inControlParameters)
	set(inControlIgnored, ' ', '?', ignore, inControlIgnored)
	set(inControlIgnored, wideChar, wideChar, ignore, inControlIgnored)
	set(inControlIgnored, '@', '~', ignore, inText)

	set(inCommand, 0, 0x06, ignore, inCommand)
	set(inCommand, bel, bel, endString, inText)
	set(inCommand, bel+1, can-1, ignore, inCommand)
	set(inCommand, can+1, can+1, ignore, inCommand)
	set(inCommand, esc+1, 0x1f, ignore, inCommand)
	return t
}
