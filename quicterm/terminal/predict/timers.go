package predict

import "time"

// All times of this package follow.
const (
	// slowBelow and slowAbove are the round trips that a person does not feel any more, and begins to feel.
	slowBelow = 20 * time.Millisecond
	slowAbove = 3 * slowBelow / 2

	// underlineAbove is the round trip above which what is new in a history is underlined: it stays long enough.
	underlineAbove = 4 * slowBelow

	// askAfter is how much later than a round trip a hint is asked for.
	askAfter = 60 * time.Millisecond

	// quiet is how much longer than a round trip an answer may take before its lack means something. busy is the same
	// for a program that has echoed what was typed just before: its machine may have much to do.
	quiet = 250 * time.Millisecond
	busy  = 8 * quiet

	// stalled is how long a key may lack its answer before it is drawn on a fast path too, and doubtful before its
	// underline says so.
	stalled  = quiet
	doubtful = 20 * quiet
)
