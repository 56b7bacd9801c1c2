package session

// A Mechanism is a part of the delivery policy that can be switched off alone, in programs that are built
// with the tag ablation (package sim measures what each part buys).
type Mechanism uint32

const (
	StreamFirst Mechanism = 1 << iota
	TailDatagrams
	FirstCopy
	HeavyCopies
	MediumCopies
	Suspicion
	ExpectedLoss
	ResendStuck
	PingTails
	Probes
	LongAckDelay
	LossyAckDelay
	AckAhead
	CopyAcks
	EagerFirst
	WindowOmission
	Drain
	SlowStartEnds
	CleanResends
)
