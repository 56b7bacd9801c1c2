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

// streamAckSlack takes the place of ackSlack on a path without datagrams: TCP sends a lost
// packet again after about 200 ms, so one that is lost is no reason to dial.
const streamAckSlack = 300 * time.Millisecond

// limits bound the dials of a transport: how many run at once, and how long one may take
// before it makes room for another.
var limits = [...]struct {
	dials   int
	timeout time.Duration
}{
	QUIC: {MaxDials, 3 * time.Second}, // some round trips on the slowest paths
	TCP:  {8, 6 * time.Second},        // twice as many round trips
	SSH:  {1, time.Minute},            // a login through some hosts on the slowest paths
}
