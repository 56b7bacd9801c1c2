package buffer

// A Verdict says what a [ReorderWindow] did with a frame.
type Verdict int

const (
	// Accepted: the frame is the next one, and can be popped.
	Accepted Verdict = iota
	// Held: the frame is early. It is kept until those before it have come.
	Held
	// Duplicate: the frame has come before. It is dropped.
	Duplicate
	// Beyond: the frame is too early, or the window is full. It is dropped.
	Beyond
)

// A ReorderWindow is the receiving half of a log: frames arrive in any
// order and any number of times, over any number of paths, and are popped in order,
// once. It holds a bounded number of frames and bytes: its owner sets both. It is not safe for concurrent use.
type ReorderWindow struct {
	next     uint64 // the frame to pop next
	frames   int
	maxBytes int
	slots    []slot // a ring that grows to frames: frame seq lives at seq % len
	bytes    int    // in slots
}

type slot struct {
	frame Frame
	full  bool
}

// NewReorderWindow returns a window that pops the frame next first. It holds only frames less than frames (at least
// 1) away from the next one, with payloads and overhead of together at most maxBytes bytes; the next one itself
// always fits.
func NewReorderWindow(next uint64, frames, maxBytes int) *ReorderWindow {
	return &ReorderWindow{next: next, frames: max(frames, 1), maxBytes: maxBytes, slots: make([]slot, 1)}
}

// Next returns the sequence number of the frame to pop next.
func (w *ReorderWindow) Next() uint64 { return w.next }

// Offer gives a sequenced frame to the window, which keeps its payload until the frame is popped. The caller must pop
// accepted frames before it offers the next one.
func (w *ReorderWindow) Offer(f Frame) Verdict {
	if f.Seq < w.next {
		return Duplicate
	}
	ahead := f.Seq - w.next
	if ahead >= uint64(w.frames) {
		return Beyond
	}
	if ahead < uint64(len(w.slots)) && w.slot(f.Seq).full {
		return Duplicate
	}
	early := ahead > 0
	if early && w.bytes+frameMemory(f) > w.maxBytes {
		return Beyond
	}
	if ahead >= uint64(len(w.slots)) {
		w.grow(int(ahead) + 1)
	}
	s := w.slot(f.Seq)
	*s = slot{frame: f, full: true}
	w.bytes += frameMemory(f)
	if early {
		return Held
	}
	return Accepted
}

// Pop removes and returns the next frame, if it has come.
func (w *ReorderWindow) Pop() (Frame, bool) {
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

// SkipTo makes next the frame to pop next, because those before it will not come. It
// drops the frames held before next, and never goes back.
func (w *ReorderWindow) SkipTo(next uint64) {
	for ; w.next < next && w.bytes > 0; w.next++ {
		if s := w.slot(w.next); s.full {
			w.bytes -= frameMemory(s.frame)
			*s = slot{}
		}
	}
	w.next = max(w.next, next)
}

// grow makes room for a number of frames from the next one on, and for some more.
func (w *ReorderWindow) grow(frames int) {
	before := w.slots
	w.slots = make([]slot, min(max(frames, 2*len(before)), w.frames))
	for _, s := range before {
		if s.full {
			*w.slot(s.frame.Seq) = s
		}
	}
}

func (w *ReorderWindow) slot(seq uint64) *slot { return &w.slots[seq%uint64(len(w.slots))] }

func frameMemory(f Frame) int { return Overhead + len(f.Payload) }
