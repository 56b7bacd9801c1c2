package session

// A Mechanism is a part of the delivery policy that a measurement can switch off alone, in programs that are built
// with the tag ablation (package sim measures what each part buys).
type Mechanism uint32

const (
	StreamFirst    Mechanism = 1 << iota // keys on the stream while no loss is seen
	TailDatagrams                        // the tail in datagrams
	Copies                               // more than one within a round trip
	Suspicion                            // late acks and copies of the peer show loss
	ExpectedLoss                         // on a path that is not measured yet
	PingTails                            // the tail beside pings
	Probes                               // pings for acks that are overdue
	AckDelays                            // acks that wait for the next key
	CopyAcks                             // acks of copies that are spaced, and the tail beside them
	WindowOmission                       // acks without the window's end
	Drain                                // of the network's queue, for the shortest round trip
	SlowStartEnds                        // when round trips grow
)
