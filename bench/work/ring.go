//go:build linux

package work

import (
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/buffer"
)

// Ring fills the ring of a session from which the client has gone, and takes the session over. It
// yields "append", MB/s that the ring takes; "own memory", MiB that the holder has for itself then;
// and "resume", milliseconds from the start of a client, in this process, until it has all.
type Ring struct {
	ownSessions
	Size int // bytes that the ring keeps
}

func (w Ring) Run(j *Job) []Figure {
	// The ring keeps all of this: it evicts up to MaxSegment bytes at once, and has the frames' headers too.
	size := (w.Size - buffer.MaxSegment) * 15 / 16
	known := holders(j)
	j.Begin()
	took := fillRing(j.T, j.Host, "full", size)
	holder := holders(j, known...)[0]
	appends := one("append", "MB/s", float64(size)/1e6/took.Seconds())
	own := one("own memory", "MiB", float64(measure.Private(j.T, holder))/(1<<20))
	begun := time.Now()
	takeOver(j.T, j.Host, "full", size)
	resume := one("resume", "ms", measure.Milliseconds(time.Since(begun)))
	j.End()
	return []Figure{appends, own, resume}
}
