package buffer

// A Verdict says what became of a frame that was offered to a [Window].
type Verdict int

const (
	// Accepted: the frame is the next one, and can be popped.
	Accepted Verdict = iota
	// Held: the frame is early, and is kept until those before it are there.
	Held
	// Duplicate: the frame was there before, and is dropped.
	Duplicate
	// Beyond: the frame is too early, or there is no memory left to keep it,
	// and it is dropped.
	Beyond
)

// A Window is the receiving half of a log: frames arrive in any order and any
// number of times, over any number of paths, and leave it in order, once. What
// it holds is bounded in frames and in bytes. It is not safe for concurrent use.
type Window struct {
	next     uint64 // the frame to leave next
	maxBytes int
	slots    []slot // a ring: frame seq lives at seq % len
	bytes    int    // in slots
}

type slot struct {
	frame Frame
	full  bool
}

// NewWindow returns a window whose first frame out will be next. It holds only
// frames less than frames (at least 1) away from the next one, with payloads
// and overhead of together at most maxBytes bytes; the next one itself always
// fits.
func NewWindow(next uint64, frames, maxBytes int) *Window {
	return &Window{next: next, maxBytes: maxBytes, slots: make([]slot, max(frames, 1))}
}

// Next returns the sequence number of the frame that will leave next.
func (w *Window) Next() uint64 { return w.next }

// Offer gives a sequenced frame to the window, which keeps its payload until
// the frame has been popped. Frames that were accepted are to be popped before
// the next one is offered.
func (w *Window) Offer(f Frame) Verdict {
	if f.Seq < w.next {
		return Duplicate
	}
	if f.Seq-w.next >= uint64(len(w.slots)) {
		return Beyond
	}
	s := w.slot(f.Seq)
	if s.full {
		return Duplicate
	}
	early := f.Seq > w.next
	if early && w.bytes+frameMemory(f) > w.maxBytes {
		return Beyond
	}
	*s = slot{frame: f, full: true}
	w.bytes += frameMemory(f)
	if early {
		return Held
	}
	return Accepted
}

// Pop removes and returns the next frame, if it is there.
func (w *Window) Pop() (Frame, bool) {
	s := w.slot(w.next)
	if !s.full {
		return Frame{}, false
	}
	f := s.frame
	w.bytes -= frameMemory(f)
	*s = slot{}
	w.next++
	return f, true
}

// SkipTo gives up on the frames before next, which will not come any more.
// Frames held that are before it are dropped. It never goes back.
func (w *Window) SkipTo(next uint64) {
	for ; w.next < next && w.bytes > 0; w.next++ {
		if s := w.slot(w.next); s.full {
			w.bytes -= frameMemory(s.frame)
			*s = slot{}
		}
	}
	w.next = max(w.next, next)
}

func (w *Window) slot(seq uint64) *slot { return &w.slots[seq%uint64(len(w.slots))] }

func frameMemory(f Frame) int { return Overhead + len(f.Payload) }
