// Package buffer holds the frames of a session: the codec for every lane, the [Ring] that keeps frames until the
// receiver has them, and the [ReorderWindow] that reorders frames that arrive and drops duplicates.
//
// [Ring.Append] encodes a frame, and its bytes never change after that. A
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
// All integers are big endian. Sequence numbers start at 1, increase by one, are never reused and never wrap. Frames
// with sequence number 0 are outside the log: they concern one attachment only and are never kept.
//
// A [ShortCodec] leaves out of a frame's header what its receiver knows, for the small frames of
// a person who types. The CRC stays that of the frame as the ring has it.
//
// The package does not know what frames mean. It uses no sockets and no clock.
package buffer
