package quicterm

import (
	"fmt"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/session"
)

// A Status says how a session is doing.
type Status struct {
	Name     string
	Link     Link
	RTT      time.Duration // end to end, 0 if not known
	Carriers int
	Unacked  int // frames of input that the server does not have
	Counters session.Counters
}

// Status returns how the session is doing.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		Name:     s.attached.Name,
		Link:     s.link,
		RTT:      s.peer.BestRTT(),
		Carriers: s.pump.Carriers(),
		Unacked:  int(s.ring.Next() - s.peer.Acked()),
		Counters: s.peer.Counters(),
	}
}

// String returns the status in lines for people.
func (st Status) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "session %s: %v since %s\n", st.Name, st.Link.State, st.Link.Since.Format(time.TimeOnly))
	fmt.Fprintf(&b, "connections %d, round trip %v, input not acknowledged: %d frames\n",
		st.Carriers, st.RTT.Round(100*time.Microsecond), st.Unacked)
	c := st.Counters
	fmt.Fprintf(&b, "received twice %d, reordered %d, corrupted %d, gaps %d (%d bytes), resends %d (%d bytes)",
		c.Duplicates, c.Reordered, c.Corrupted, c.Gaps, c.LostBytes, c.Resends, c.ResentBytes)
	return b.String()
}
