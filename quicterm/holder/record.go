//go:build linux || darwin

package holder

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A recording is a file with the output of a terminal, of a session that must be recorded. drawLoop
// writes it. An error of writing ends the session, see notRecordedLocked. A nil recording records
// nothing.
type recording struct {
	log  *slog.Logger
	file *os.File
	w    *asciicast.Writer // nil after an error, and after the program's end
	next uint64            // the first frame that is not recorded
	err  error             // the first of writing
}

// newRecording begins the recording that a launch asks for. It returns nil if that asks for none.
func newRecording(launch *wire.Launch, now time.Time, log *slog.Logger) (*recording, error) {
	if launch.Recording != wire.RecordingRequired || !launch.PTY {
		return nil, nil
	}
	if err := os.MkdirAll(launch.RecordingDir, 0o700); err != nil {
		return nil, fmt.Errorf("sessions must be recorded here: %w", err)
	}
	var file *os.File
	err := fs.ErrExist
	for _, layout := range []string{"20060102-150405", "20060102-150405.000"} { // a lost session may be shown twice a second
		if errors.Is(err, fs.ErrExist) {
			name := fmt.Sprintf("%s-%s-%s.cast", now.Format(layout), launch.Name, launch.ID.String()[:8])
			file, err = os.OpenFile(filepath.Join(launch.RecordingDir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sessions must be recorded here: %w", err)
	}
	header := asciicast.Header{
		Cols:    int(launch.Size.Cols),
		Rows:    int(launch.Size.Rows),
		Start:   now,
		Title:   launch.Name,
		Command: launch.Command,
	}
	if header.Cols == 0 || header.Rows == 0 {
		header.Cols, header.Rows = 80, 24
	}
	for _, v := range launch.Env {
		if term, ok := strings.CutPrefix(v, "TERM="); ok {
			header.Term = term
		}
	}
	w, err := asciicast.NewWriter(file, header)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("sessions must be recorded here: %w", err)
	}
	return &recording{log: log, file: file, w: w, next: 1}, nil
}

// frame records a frame of the output, unless that was done before.
func (r *recording) frame(f buffer.Frame) {
	if r == nil || r.w == nil || f.Seq < r.next {
		return
	}
	now := time.Now()
	var err error
	if f.Seq > r.next {
		err = r.w.Marker(now, fmt.Sprintf("output is missing (frames %d to %d)", r.next, f.Seq-1))
	}
	r.next = f.Seq + 1
	if err == nil {
		err = r.write(now, f)
	}
	if err != nil {
		r.err = err
		r.log.Error("the session is not recorded any more", "file", r.file.Name(), "error", err)
	}
	if err != nil || f.Type == wire.Exit {
		r.w = nil
	}
}

// failure returns the error that has ended the recording, without the name of the file, or nil.
func (r *recording) failure() error {
	if r == nil {
		return nil
	}
	if path := new(fs.PathError); errors.As(r.err, &path) {
		return path.Err
	}
	return r.err
}

// notRecordedLocked ends a session that must be recorded and cannot be, as sudo and tlog do: the
// program is hung up. What it reads and prints from now on is dropped.
func (h *Holder) notRecordedLocked(err error) {
	h.life.unrecorded = true
	h.hangupLocked(fmt.Sprintf("ended, because it could not be recorded: %v", err))
}

func (r *recording) write(now time.Time, f buffer.Frame) error {
	switch f.Type {
	case wire.Stdout:
		return r.w.Output(now, f.Payload)
	case wire.Resize:
		if size, _, err := wire.ParseSizing(f.Payload); err == nil {
			return r.w.Resize(now, int(size.Cols), int(size.Rows))
		}
	case wire.Exit:
		return r.w.Exit(now, int(wire.ParseExitStatus(f.Payload).Status))
	}
	return nil
}

// finish records what is left in the ring, and closes the file.
func (r *recording) finish(ring *buffer.Ring) {
	if r == nil {
		return
	}
	for from := max(r.next, ring.First()); r.w != nil; {
		frames, next := ring.Slice(from, drawNow)
		if frames == nil {
			break
		}
		for from = next; len(frames) > 0; {
			f, n, err := buffer.Parse(frames)
			if err != nil {
				break
			}
			r.frame(f)
			frames = frames[n:]
		}
	}
	if err := r.file.Close(); err != nil {
		r.log.Error("the recording may not be whole", "file", r.file.Name(), "error", err)
	}
}
