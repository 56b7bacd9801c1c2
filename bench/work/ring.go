//go:build linux

package work

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/buffer"
	qtclient "github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Ring fills the ring of a session from which the client has gone, and takes the session over. It
// yields "append", MB/s that the ring takes; "own memory", MiB that the holder has for itself then;
// and "resume", milliseconds from the start of a client, in this process, until it has all.
type Ring struct {
	ownSessions
	Size int // bytes that the ring keeps
}

func (w Ring) Run(j *Job) []Figure {
	const limit = 2 * time.Minute // until a client has all
	t, h := j.T, j.Host
	// The ring keeps all of this: it evicts up to MaxSegment bytes at once, and has the frames' headers too.
	size := (w.Size - buffer.MaxSegment) * 15 / 16
	known := holders(j)
	x := h.Shell(h.Addr, "-s", "full")
	folder := h.Path("full")
	x.Run(fmt.Sprintf("mkdir %s; cd %s; mkfifo go done; stty -opost", folder, folder), "mkfifo")
	holder := holders(j, known...)[0]
	x.Send(fmt.Sprintf("read x < go; s=$(date +%%s%%N); head -c %d /dev/zero | tr '\\0' x; echo $(($(date +%%s%%N) - s)) > done; cat\r~.", size))
	x.Exit()
	j.Begin()
	out, err := h.QT("connect", fmt.Sprintf("cd %s; echo > go; cat done", folder)).Output()
	took, invalid := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err := errors.Join(err, invalid); err != nil {
		t.Fatal(err)
	}
	appends := one("append", "MB/s", float64(size)/1e6/time.Duration(took).Seconds())
	own := one("own memory", "MiB", float64(measure.Private(t, holder))/(1<<20))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begun := time.Now()
	all := &stopwatch{size: size, done: cancel}
	session, err := newClient(t, h).Attach(ctx, &wire.Attach{Mode: wire.ModeAttach, Session: "full", PTY: true}, qtclient.Streams{Stdout: all})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Run(ctx); !errors.Is(err, qtclient.ErrLeft) {
		t.Fatal(err)
	}
	if all.took == 0 {
		t.Fatalf("%d of %d bytes came within %v", all.written, size, limit)
	}
	resume := one("resume", "ms", measure.Milliseconds(time.Since(begun)))
	j.End()
	return []Figure{appends, own, resume}
}
