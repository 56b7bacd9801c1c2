// Package recording writes what a session shows into asciicast files.
package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Recorder writes what a session shows into a recording. The session's output passes through its
// streams; Begin comes before the session runs.
type Recorder struct {
	Failed func(error) // called once, with the first error of writing
	Skips  bool        // the server does not wait for this client

	mu         sync.Mutex
	file       *os.File
	w          *asciicast.Writer // nil after the end
	cols, rows int
	missing    uint64 // bytes of output
	err        error
}

// Begin writes the header of a recording into a file, which End closes.
func (r *Recorder) Begin(file *os.File, h asciicast.Header) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file, r.cols, r.rows = file, h.Cols, h.Rows
	r.w, r.err = asciicast.NewWriter(file, h)
	return r.err
}

// Header describes a recording of a session, from now on.
func Header(s *client.Session, host string) asciicast.Header {
	size := s.Sizing().Size
	if size.Cols == 0 || size.Rows == 0 { // the server does not tell it
		size = wire.Size{Cols: 80, Rows: 24}
	}
	return asciicast.Header{
		Cols:  int(size.Cols),
		Rows:  int(size.Rows),
		Start: time.Now(),
		Title: s.Name() + " on " + host,
	}
}

// Streams returns streams that record what they pass on.
func (r *Recorder) Streams(to client.Streams) client.Streams {
	next := to
	to.Stdout = writerFunc(func(b []byte) (int, error) {
		r.record(func(now time.Time) error { return r.w.Output(now, b) })
		if next.Stdout == nil {
			return len(b), nil
		}
		return next.Stdout.Write(b)
	})
	to.Began = func(snapshot []byte) {
		r.record(func(now time.Time) error { return r.w.Output(now, snapshot) })
		if next.Began != nil {
			next.Began(snapshot)
		}
	}
	to.Lost = func(g client.Gap) {
		r.record(func(now time.Time) error { return r.gap(now, g) })
		if next.Lost != nil {
			next.Lost(g)
		}
	}
	to.Resized = func(size wire.Sizing) {
		r.record(func(now time.Time) error { return r.resize(now, size.Size) })
		if next.Resized != nil {
			next.Resized(size)
		}
	}
	return to
}

// record calls write while there is a recording.
func (r *Recorder) record(write func(now time.Time) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil || r.err != nil {
		return
	}
	if r.err = write(time.Now()); r.err != nil {
		r.Failed(Reason(r.err))
	}
}

// gap records that output is missing. A snapshot in its place is for a terminal that was just reset.
func (r *Recorder) gap(now time.Time, g client.Gap) error {
	const resetTerminal = "\x18\x1bc" // CAN, which ends an unfinished sequence, and RIS
	r.missing += g.Bytes
	if err := r.w.Marker(now, terminal.GapText(g, false, r.Skips)); err != nil || g.Snapshot == nil {
		return err
	}
	return r.w.Output(now, append([]byte(resetTerminal), g.Snapshot...))
}

func (r *Recorder) resize(now time.Time, size wire.Size) error {
	cols, rows := int(size.Cols), int(size.Rows)
	if cols == r.cols && rows == r.rows {
		return nil
	}
	r.cols, r.rows = cols, rows
	return r.w.Resize(now, cols, rows)
}

// End ends the recording, of a program that has ended with a status or that runs on. It returns the
// first error of writing.
func (r *Recorder) End(ended bool, status int) error {
	r.record(func(now time.Time) error {
		if ended {
			return r.w.Exit(now, status)
		}
		return r.w.Close(now)
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w = nil
	if err := r.file.Close(); r.err == nil {
		r.err = err
	}
	return r.err
}

// Complete returns an error if output is missing in a recording that has ended.
func (r *Recorder) Complete() error {
	if r.missing == 0 {
		return nil
	}
	return fmt.Errorf(hasGaps, r.missing)
}

// maxSameName bounds how many recordings of a session may begin in the same second.
const maxSameName = 100

// newFile creates a file for a recording in a directory. Its name has the time, the session
// and the host.
func newFile(dir string, now time.Time, session, host string) (*os.File, error) {
	base := fmt.Sprintf("%s-%s-%s", now.Format("20060102-150405"), fileName(session), fileName(host))
	for i := 1; ; i++ {
		name := base + ".cast"
		if i > 1 {
			name = fmt.Sprintf("%s-%d.cast", base, i)
		}
		f, err := Create(filepath.Join(dir, name))
		if !errors.Is(err, fs.ErrExist) || i == maxSameName {
			return f, err
		}
	}
}

// Create creates a file that only this account can read: a session may show secrets. A file
// that exists is an error.
func Create(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// fileName returns a name with only the characters that every system allows in a file's name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
