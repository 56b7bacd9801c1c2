package drive

import "time"

const (
	// settled is how long a terminal must be still until what a program has drawn counts as all of it, such as the
	// characters that were pasted into it: a program draws within some milliseconds.
	settled = 50 * time.Millisecond

	// askAgain is how long the server has to confirm that the terminal is still before it is asked once more.
	askAgain = 2 * settled
)
