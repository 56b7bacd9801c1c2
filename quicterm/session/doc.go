// Package session is the resumable pair of logs that a terminal session consists
// of, as a pure state machine: it has no socket, no goroutine and no clock.
//
// Each end of an attachment has an [Endpoint]; its peer is the one at the other end. An endpoint sends the frames of
// a [buffer.Ring] and receives those of the peer's, over any number of carriers that come and go. A carrier is only a
// hint: the numbers on the frames decide, so a frame may be sent again, over any carrier, at any time, and is still
// delivered in its place, once.
//
// A carrier has up to two lanes:
//
//   - The stream is reliable and in order. It carries consecutive frames, the first of
//     which is at most the next that the peer needs. It leaves out frames that the peer
//     has acknowledged, and ranges that it replaces by a gap: frames that the ring
//     has evicted, or that Skip dropped. A gap may have a snapshot, whose parts come on the
//     stream before it. A bulk carrier's stream carries only frames of which there are many, for the
//     carrier that it is beside, and no others (bulk.go).
//   - Datagrams may be lost, duplicated and reordered. On a path that loses packets, while all
//     unacknowledged frames, the tail of the log, fit into one datagram, each datagram carries all of
//     them, so that each repairs every loss before it. It is sent again until it is acknowledged.
//
// The policy of delivery, all of it. What is sent again depends only on the loss of the path (loss.go):
//
//	what                           lane       when                       again, until it is acknowledged
//
//	tail, no loss seen             stream     at once                    by QUIC; as a datagram when the ack is overdue
//	tail, loss seen                datagram   at once                    2 to 8 copies within a round trip, then one
//	                                                                     each time that the ack is overdue, up to 1 s
//	more than a datagram           stream     as the windows allow       by QUIC; a ping asks for an overdue ack
//	a backlog that lasts           streams    as the windows allow       by TCP; on others when the carrier ends, or
//	                               of TCP                                is silent for max(1 s, 4 RTT) as the only one
//	ack                            datagram,  with frames, or after 5 ms with the frames that come again
//	                               or stream  (client: the next key)
//	ping                           datagram   when the owner says so     by the owner; a short tail goes with it
//	notice, gap, snapshot, role    stream     at once                    on the next carrier
//
// timers.go has its times, Mechanism its parts, and docs/decisions/delivery.md what each of them buys.
//
// The life of a frame:
//
//	sending endpoint                                   receiving endpoint
//
//	Ring.Append, Appended
//	      | the path loses packets,
//	      | and the tail fits      yes +-----------+
//	      | into a datagram? --------->| Datagram  |--- repeated until ---> Receive
//	      | no                         +-----------+    acknowledged          |
//	      v                                                                   |
//	  congestion window (per carrier)  +-----------+                          |
//	  flow-control window ------------>|  Stream   |--- once per carrier ---> |
//	                                   +-----------+                          v
//	                                                      buffer.ReorderWindow
//	                                                                          |
//	                                                   pending (Arrived looks, Take removes)
//	                                                                          |
//	  not sent again  <-------------------- ack: received --------------------+
//	                                                                          v
//	                                                     the consumer handles it, Consume
//	                                                                          |
//	  Ring.Release  <---------------------- ack: consumed, window <-----------+
//
// The owner of an Endpoint reports events with their time (Up, Down, Receive, Appended),
// and asks with SendTime which lane has something to send, and when. Its consumer takes
// delivered frames with Take, handles them, and reports that with Consume.
package session
