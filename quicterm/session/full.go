package session

// Full reports whether the other end holds all that it can of the log, as where
// the program does not read its input. It owes no ack until it has dealt with some.
func (p *Peer) Full() bool {
	return p.acked < p.log.Next() && p.span(p.acked, p.acked+1) > p.room(p.acked, 0)
}
