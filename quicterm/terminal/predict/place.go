package predict

import "github.com/quicterm/quicterm/quicterm/wire"

// press does to a line what an editor does for a key. It returns the class of the key at that place, and
// false where nobody can tell what it does: then it is a boundary, and nothing has changed.
func (e *edit) press(k stroke) (class, bool) {
	x := e.x
	switch k.class {
	case printable:
		return e.print(string(k.r), 1, false)
	case wide:
		return e.print(string(k.r), 2, false)
	case backspace:
		return e.erase()
	case left:
		if x > e.start {
			e.x -= e.widthLeft(x)
		}
	case right:
		if x < e.textEnd() {
			e.x += e.cells[x].Width
		}
	case home:
		e.x = e.start
	case end:
		e.x = e.textEnd()
	default:
		return e.kill(k.class)
	}
	return k.class, e.x != x
}

// erase removes the character before the cursor.
func (e *edit) erase() (class, bool) {
	if e.x <= e.start {
		return other, false
	}
	kind := backspace
	if e.textEnd() > e.x {
		kind = backspaceInside
	}
	x := e.x - e.widthLeft(e.x)
	e.remove(x, e.x)
	e.x = x
	return kind, true
}

// kill removes what the class says.
func (e *edit) kill(c class) (class, bool) {
	from, to := e.x, e.x
	switch c {
	case deleteKey:
		if e.x < e.textEnd() {
			to += max(e.cells[e.x].Width, 1)
		}
	case killEnd:
		to = e.textEnd()
	case killStart:
		from = e.start
	case killWord:
		from = e.wordLeft(false)
	}
	if from == to {
		return other, false
	}
	e.remove(from, to)
	e.x = from
	return c, true
}

// pressCooked does to a line what the kernel does for a key in canonical mode.
func (e *edit) pressCooked(k stroke, f wire.TerminalFlags) (class, bool) {
	erases := f&(wire.UsualKeys|wire.EchoErase) == wire.UsualKeys|wire.EchoErase
	if e.x >= e.cols {
		e.start = max(e.start, e.cols) // it does not erase into the row above
	}
	switch {
	case k.class == printable || k.class == wide:
		width := 1
		if k.class == wide {
			width = 2
		}
		return e.print(string(k.r), width, true)
	case k.class == backspace && k.r == 0x7f && erases && e.x > e.start && e.cells[e.x-1].Width == 1:
		return e.erase()
	case k.class == killStart && erases && e.x > e.start:
		return e.kill(killStart)
	case k.class == killWord && erases && f&wire.Extended != 0 && e.wordLeft(false) == e.wordLeft(true):
		return e.kill(killWord) // systems do not agree on the words of other lines
	}
	return other, false
}
