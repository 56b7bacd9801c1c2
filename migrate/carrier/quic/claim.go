package quic

import (
	"sync"
	"time"

	quicgo "github.com/quic-go/quic-go"
)

// claimTime bounds how long a claim blocks. It is longer than the call takes until the claim stands.
const claimTime = time.Millisecond

// A claimer makes quic-go put its acks into packets with datagrams. Without one, an ack that is not yet due goes only
// into a packet for which some stream claims to have data. The claimer has a stream of its own that does so, and has
// none when quic-go asks for it. Nothing is ever sent on that stream, and the peer does not learn of it. The
// carrier's stream could do the same, but a claim might hold up a write or lose the stream's end.
type claimer struct {
	conn   *quicgo.Conn
	stream func() *quicgo.SendStream // nil if the peer permits none
}

func newClaimer(conn *quicgo.Conn) claimer {
	return claimer{conn, sync.OnceValue(func() *quicgo.SendStream {
		stream, err := conn.OpenUniStream()
		if err != nil {
			return nil
		}
		return stream
	})}
}

// claim is called right after a datagram was queued: before, quic-go might send a packet with the ack
// alone. If quic-go packs the datagram sooner, a packet with the ack follows at once. The call ends when
// quic-go has asked, or at the deadline; the claim then stands until the next packet.
func (c claimer) claim() {
	select {
	case <-c.conn.HandshakeComplete():
	default:
		return // quic-go may be writing what the peer permits
	}
	if stream := c.stream(); stream != nil {
		stream.SetWriteDeadline(time.Now().Add(claimTime))
		stream.WriteWithLimit(make([]byte, 1), func(int) int { return 0 })
	}
}
