package terminal

import (
	"math"
	"time"
)

// All times of this package follow, except those that only one system has.
const (
	// drawAfter is the least time between two times that a window is drawn: most of what a program draws at once comes
	// within that.
	drawAfter = 20 * time.Millisecond

	// drawSoon is how long the first output after a pause waits: what follows it at once is drawn with it, and the echo
	// of a key is not late.
	drawSoon = drawAfter / 5

	// lookAgain is how often a painter asks the predictor whether an overdue answer has come.
	lookAgain = 50 * time.Millisecond

	// titleAfter is how long a link is down before the title says so: most outages end before a user reads it.
	titleAfter = time.Second

	// pasteAfter is how long a paste takes before a line says how far it is.
	pasteAfter = time.Second

	// openTime bounds how long after a key output is read at once, if no hint says that the program has had the key.
	openTime = 5 * time.Second

	// noticeTime is how long the title has a notice, which stands there if a full-screen program leaves no other place:
	// time to read a line.
	noticeTime = 5 * titleAfter

	// textTime is how long a text of ours stays in place of the window, unless a key is typed before: it is time to read
	// the help. It is also how long the title has what has ended while nobody was there, and who came or went.
	textTime = 4 * noticeTime
)

// newTimer returns a timer that calls f when it is reset and has expired.
func newTimer(f func()) *time.Timer {
	t := time.AfterFunc(math.MaxInt64, f)
	t.Stop()
	return t
}
