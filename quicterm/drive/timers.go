package drive

import "time"

// askAgain is how long the server has to confirm that the terminal is still before it is asked once more: more than it
// takes, and less than a person waits.
const askAgain = 100 * time.Millisecond

// peekTimeout bounds the time for the screen after the attach. A holder that catches up with a flood of output may take
// some seconds.
const peekTimeout = 30 * time.Second
