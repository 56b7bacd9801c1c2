// Package buffer holds the frames of a session: the codec that every lane
// speaks, the [Ring] that remembers what was sent until the other end has it,
// and the [Window] that puts what arrives back in order, once.
//
// A frame is born in [Ring.Append] and its bytes never change after that. A
// send, a resend and a replay are all slices of the ring.
//
//	 0       1       2       3       4       5       6       7
//	+-------+-------+-------+-------+-------+-------+-------+-------+
//	|                             seq u64                           |
//	+-------+-------+-------+-------+-------+-------+-------+-------+
//	| type  |       length u24      |  payload (length bytes) ...
//	+-------+-------+-------+-------+-------+-------+-------+-------+
//	|   CRC-32C over all before it  |
//	+-------+-------+-------+-------+
//
// All integers are big endian. Sequence numbers start at 1, go up by one, are
// never reused and never wrap. Frames with sequence number 0 are outside the
// log: they concern one attachment only and are never kept.
//
// The package knows nothing of what frames mean, of sockets or of time.
package buffer
