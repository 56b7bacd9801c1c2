package trace

import (
	"slices"
	"sort"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/asciicast"
	"github.com/quicterm/quicterm/quicterm/terminal/predict"
)

const (
	// atOnce is how soon after a key its effect counts as drawn at once.
	atOnce = 5 * time.Millisecond

	// afterwards is how long a replay continues after the last event, for what a policy does by itself.
	afterwards = 20 * time.Second

	// minAsking is how far apart the questions for a hint are at least.
	minAsking = 50 * time.Millisecond
)

// epoch is the virtual time of a trace's start. What it is does not matter.
var epoch = time.Unix(1_700_000_000, 0)

// A moment is when something happens in a replay.
type moment struct {
	at time.Duration
	do func()
}

// A replay is a client of a trace's session.
type replay struct {
	*score
	policy  Policy
	rtt     time.Duration
	server  *server
	agenda  []moment // the next first
	now     time.Duration
	screen  *screen.Screen
	overlay predict.Overlay
	wake    time.Duration // when the policy is asked again without a cause; 0 for never
	nextAsk time.Duration
}

// A Study is a trace whose truth is known.
type Study struct {
	*Trace
	truth *truth
}

// NewStudy plays a trace once, without a network.
func NewStudy(t *Trace) *Study { return &Study{t, study(t)} }

// Replay plays the trace with a policy over a network.
func (t *Study) Replay(p Policy, n Network) *Result {
	r := &replay{
		policy: p, rtt: n.RTT, server: serve(t.Trace, n),
		screen: screen.New(t.Cols, t.Rows, screen.Limits{}),
	}
	r.score = newScore(t, r)
	r.cost(func() { p.SetRTT(n.RTT) })
	for i := range t.truth.keys {
		r.plan(t.truth.keys[i].at, func() { r.typed(i) })
		r.plan(t.truth.keys[i].at+atOnce, func() { r.check(i) })
	}
	for _, d := range r.server.deliveries {
		r.plan(d.at, func() { r.delivered(d) })
	}
	end := afterwards
	if n := len(r.agenda); n > 0 {
		end += r.agenda[n-1].at
	}
	for len(r.agenda) > 0 && r.agenda[0].at <= end {
		m := r.agenda[0]
		r.agenda = r.agenda[1:]
		r.now = m.at
		m.do()
	}
	r.now = end
	return r.finish()
}

func (r *replay) time() time.Time { return epoch.Add(r.now) }

// plan makes something happen, after what was planned for the same time before.
func (r *replay) plan(at time.Duration, do func()) {
	n := sort.Search(len(r.agenda), func(i int) bool { return r.agenda[i].at > at })
	r.agenda = slices.Insert(r.agenda, n, moment{at, do})
}

// cost adds the time that the policy takes.
func (r *replay) cost(f func()) {
	began := time.Now()
	f()
	r.result.CPU += time.Since(began)
}

func (r *replay) typed(i int) {
	r.lastKey = i
	r.cost(func() { r.policy.Typed(r.time(), r.screen, []byte(r.truth.keys[i].data), uint64(i+1)) })
	r.draw()
}

func (r *replay) delivered(d delivery) {
	switch d.event.Code {
	case asciicast.Output:
		r.screen.Write([]byte(d.event.Data))
		r.position++
		r.cost(func() { r.policy.Output(r.time(), r.screen) })
	case asciicast.Resize:
		cols, rows, _ := asciicast.ParseSize(d.event.Data)
		r.screen.Resize(cols, rows)
		r.position++
		r.cost(func() { r.policy.Reset(r.time()) })
	case Hint:
		r.cost(func() { r.policy.Hinted(r.time(), r.screen, d.hint) })
	}
	r.draw()
}

// draw asks the policy what to draw now, and when to ask again.
func (r *replay) draw() {
	var until time.Time
	r.cost(func() { r.overlay, until = r.policy.Overlay(r.time(), r.screen) })
	r.drawn()
	wake := time.Duration(0)
	if !until.IsZero() {
		wake = max(until.Sub(epoch), r.now+time.Millisecond)
	}
	if r.policy.InDoubt() {
		if r.now >= r.nextAsk {
			r.nextAsk = r.now + max(minAsking, r.rtt/2)
			if d, ok := r.server.asked(r.now); ok {
				r.plan(d.at, func() { r.delivered(d) })
			}
		}
		if wake == 0 || wake > r.nextAsk {
			wake = r.nextAsk
		}
	}
	if r.wake = wake; wake != 0 {
		r.plan(wake, func() {
			if r.wake == r.now {
				r.draw()
			}
		})
	}
}
