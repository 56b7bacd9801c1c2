package session

import "time"

const (
	// initialCwnd is what is sent before a path is measured: 32 packets of 1 KiB, as
	// QUIC begins.
	initialCwnd = 32 << 10

	// minCwnd is about three packets. With less, a path would be idle between an ack
	// and the frames that it allows.
	minCwnd = 3600

	// maxCwnd is enough for the fastest and longest paths.
	maxCwnd = 4 << 20

	// rateSamples is over how many of the last samples, about one a round trip, the
	// best delivery rate is taken.
	rateSamples = 8

	// longTrips is how many long round trips in a row show that the network has a queue. Fewer do not:
	// QUIC paces a burst, so that the end of it is late.
	longTrips = 8

	// steadySamples is how many samples in a row without growth end slow start: the transport limits
	// what is sent.
	steadySamples = 3
)

// A cwnd is the congestion window of a carrier's stream. It limits the bytes in flight
// so that a flood fills the path and leaves only a short queue in the network: a key
// typed then would wait behind that queue. It is 1.25 times the best recent delivery
// rate times the shortest round trip with the delay of acks, as in BBR
// (draft-ietf-ccwg-bbr), or twice the product while the rate grows and there is no queue.
// A round trip counts as minLateRTT at least: on short paths acks are late because the peer
// is, as a browser, and a window of what arrives in less would shrink from trip to trip.
//
// Before that, in slow start, it grows by what is delivered while round trips are short. A queue, or a
// loss that delays what follows, ends slow start.
type cwnd struct {
	initial     int    // bytes, at the beginning of slow start
	prompt      bool   // the peer acknowledges at once, as it does bulk data: longer trips leave no room for a delay
	grownBytes  int    // bytes that slow start has added
	delivered   uint64 // bytes, at the last ack
	measured    bool   // slow start is over
	longSamples int    // round trips in a row that were longer than without a queue
	steadyCount int    // samples in a row without growth, while there was more to send

	rates    [rateSamples]float64 // bytes per second
	nextRate int                  // index of the sample to replace
	sample   struct {             // what is being measured, if seq is not 0
		seq       uint64 // until this frame is acknowledged
		delivered uint64 // bytes delivered when it was sent
		at        time.Time
	}
	limited bool // the window was nearly full during this sample
	growing bool // the last sample was better than those before

	currentMin, previousMin time.Duration // shortest round trips in this span and before; at first of the last path
	spanStart               time.Time
	measuredAnew            bool      // this is not the first span
	drainDue                bool      // the network's queue is to empty, so that they show
	drainUntil              time.Time // little is sent before, for that
}

// addRTT records a round trip; smoothed is what they usually take.
func (w *cwnd) addRTT(now time.Time, rtt, smoothed time.Duration) {
	least := w.minRTT()
	w.longSamples++
	if least == 0 || rtt <= least*9/8+shortAckDelay {
		w.longSamples = 0
	}
	late := least > 0 && rtt > least*7/4+shortAckDelay // later than pacing explains
	if !without(SlowStartEnds) && w.limited && (late || w.queued()) {
		w.endSlowStart()
	}
	span := firstMinRTTSpan
	if w.measuredAnew {
		span = minRTTSpan
	}
	switch {
	case w.spanStart.IsZero():
		w.currentMin, w.spanStart = rtt, now
	case now.Sub(w.spanStart) > span:
		w.previousMin, w.currentMin, w.spanStart, w.measuredAnew = w.currentMin, rtt, now, true
		w.drainDue = w.measured
	}
	w.currentMin = min(w.currentMin, rtt)
	if w.drainDue && !without(Drain) {
		w.drainDue = false
		w.drainUntil = now.Add(min(rtt, smoothed) * 5 / 4) // rtt may include an outage
	}
}

// endSlowStart makes the window follow what was measured. If it became four times larger while round
// trips stayed short, they are those without a queue.
func (w *cwnd) endSlowStart() {
	if !w.measured {
		w.measured, w.drainDue = true, w.grownBytes < 3*w.initial
	}
}

// queued reports whether the network has a queue.
func (w *cwnd) queued() bool { return w.longSamples >= longTrips }

// minRTT returns the shortest recent round trip, or 0 if none is known.
func (w *cwnd) minRTT() time.Duration {
	if w.currentMin == 0 || w.previousMin == 0 {
		return max(w.currentMin, w.previousMin)
	}
	return min(w.currentMin, w.previousMin)
}

// rate returns the best rate of the last samples, 0 if there are none.
func (w *cwnd) rate() (best float64) {
	for _, r := range w.rates {
		best = max(best, r)
	}
	return best
}

// size returns how many bytes may be in flight.
func (w *cwnd) size(now time.Time) int {
	if now.Before(w.drainUntil) {
		return minCwnd
	}
	return w.target()
}

// target returns the same without a drain.
func (w *cwnd) target() int {
	if !w.measured {
		return min(w.initial+w.grownBytes, maxCwnd)
	}
	gain := 1.25
	if w.growing && !w.queued() {
		gain = 2
	}
	trip := max(w.minRTT()+shortAckDelay, minLateRTT)
	if w.prompt {
		trip = max(w.minRTT(), shortAckDelay)
	}
	n := gain * w.rate() * trip.Seconds()
	return int(max(min(n, maxCwnd), minCwnd))
}

// noteUse records how much space was left in a window of the given size.
func (w *cwnd) noteUse(space, size int) { w.limited = w.limited || space <= size/8 }

// sent begins a sample with the frame seq, unless one is being measured. Delivered is
// how many bytes have been. A drain is not measured: it would show the small window, not
// the path.
func (w *cwnd) sent(now time.Time, seq, delivered uint64) {
	if w.sample.seq == 0 && !now.Before(w.drainUntil) {
		w.sample.seq, w.sample.delivered, w.sample.at = seq, delivered, now
		w.limited = false
	}
}

// dropSample gives up what is being measured.
func (w *cwnd) dropSample() { w.sample.seq = 0 }

// acked records that frames up to seq have arrived, and how many bytes in all; blocked says that the
// transport has not taken the last frames yet.
func (w *cwnd) acked(now time.Time, seq, delivered uint64, blocked bool) {
	if w.limited && w.longSamples == 0 {
		w.grownBytes += int(delivered - w.delivered)
	}
	w.delivered = delivered
	if w.sample.seq == 0 || seq < w.sample.seq {
		return
	}
	took := now.Sub(w.sample.at)
	rate := float64(delivered-w.sample.delivered) / max(took, leastTook).Seconds()
	w.sample.seq = 0
	w.growing = rate > 1.1*w.rate()
	busy := w.limited || blocked
	if w.steadyCount++; w.growing || !busy {
		w.steadyCount = 0
	}
	if w.steadyCount == steadySamples {
		w.endSlowStart()
	}
	if busy || rate > w.rate() { // else it only shows how little there was to send
		w.rates[w.nextRate] = rate
		w.nextRate = (w.nextRate + 1) % rateSamples
	}
}

// SendWindow returns how many unacknowledged bytes of frames keep the carriers busy that bulk data goes on: the bulk
// carriers, and the best other one until they are past their slow start. More than that is better not appended yet: an
// interrupt can still discard it. Without carriers, the next one is taken for one like the last.
func (e *Endpoint) SendWindow(now time.Time) int {
	if len(e.carriers) == 0 {
		return max(minCwnd, e.lastPath.sendWindow)
	}
	best, bulk := 0, 0
	for _, c := range e.carriers {
		switch {
		case c.role == roleWhole && !e.hasBulk(c):
			best = max(best, c.cwnd.size(now))
		case c.role == roleBulk && c.ready && e.source(c) != nil:
			bulk += c.cwnd.size(now)
		}
	}
	return max(minCwnd, min(best+bulk, maxCwnd))
}
