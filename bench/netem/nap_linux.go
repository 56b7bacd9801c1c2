package netem

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps exactly.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	unix.Nanosleep(&t, nil)
}
