package migrate

import "time"

// A Transport is the protocol under a carrier. The smaller one is better.
type Transport int

const (
	// QUIC loses no time when packets are lost, and resumes in one round trip.
	QUIC Transport = iota
	// TCP passes networks that drop UDP packets.
	TCP
	// SSH is the pipe of an ssh program. Each dial logs in, for which a person may be needed.
	SSH
)

func (t Transport) String() string { return [...]string{"quic", "tcp", "ssh"}[t] }

// limits bound the dials of a transport: how many run at once, and how long one may take
// before it makes room for another.
var limits = [...]struct {
	dials   int
	timeout time.Duration
}{
	QUIC: {MaxDials, dialTime},
	TCP:  {8, 2 * dialTime},
	SSH:  {1, ActiveFor}, // a login through some hosts on the slowest paths
}
