package netem

import (
	"math"
	"testing"
	"time"
)

// sendAll offers packets to a link at an even pace, and returns which arrived, and when.
func sendAll(l *Link, packets int, pace time.Duration) []time.Duration {
	start := time.Unix(0, 0)
	arrived := make([]time.Duration, packets)
	for n := range arrived {
		now := start.Add(time.Duration(n) * pace)
		arrived[n] = -1
		if at := l.Send(now, 100); len(at) > 0 {
			arrived[n] = at[0].Sub(start)
		}
	}
	return arrived
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %.4g, want %.4g", what, got, want)
	}
}

func TestBursts(t *testing.T) {
	for _, b := range []Burst{{40 * time.Millisecond, 0.05}, {200 * time.Millisecond, 0.3}} {
		const packets, pace = 1_000_000, time.Millisecond
		lost, bursts := 0, 0
		before := false
		for _, at := range sendAll(NewLink(Config{Burst: b}, 1), packets, pace) {
			if at < 0 {
				lost++
				if !before {
					bursts++
				}
			}
			before = at < 0
		}
		near(t, "share of packets that are lost", float64(lost)/packets, b.Share, 0.05)
		// Some bursts, and some of the times between, fall between two packets.
		near(t, "mean length of a burst in packets", float64(lost)/float64(bursts), float64(b.Mean/pace), 0.05)
	}
}

// Whoever sends more packets, or loses some besides, sees the same bursts.
func TestBurstsAreOfTime(t *testing.T) {
	burst := Burst{Mean: 50 * time.Millisecond, Share: 0.2}
	few := sendAll(NewLink(Config{Burst: burst}, 7), 10_000, 10*time.Millisecond)
	many := sendAll(NewLink(Config{Burst: burst}, 7), 50_000, 2*time.Millisecond)
	other := sendAll(NewLink(Config{Burst: burst}, 8), 10_000, 10*time.Millisecond)
	differ := 0
	for n := range few {
		if (few[n] < 0) != (many[5*n] < 0) {
			t.Fatalf("packet %d of few and of many do not have the same fate", n)
		}
		if (few[n] < 0) != (other[n] < 0) {
			differ++
		}
	}
	if differ < 1000 {
		t.Errorf("another seed changes the fate of %d of %d packets", differ, len(few))
	}
}

func TestSetBegins(t *testing.T) {
	l := NewLink(Config{}, 1)
	for n, at := range sendAll(l, 1000, time.Millisecond) {
		if at < 0 {
			t.Fatalf("packet %d is lost without bursts", n)
		}
	}
	l.Set(Config{Burst: Burst{Mean: time.Hour, Share: 0.999_999}})
	if at := l.Send(time.Unix(2, 0), 100); at != nil {
		t.Error("a packet arrives where all of the time is a burst")
	}
	l.Set(Config{})
	if at := l.Send(time.Unix(3, 0), 100); at == nil {
		t.Error("a packet is lost when the bursts are over")
	}
}

// Packets that are early come before those that were sent up to so much earlier, and
// no sooner.
func TestEarly(t *testing.T) {
	const packets, pace = 100_000, time.Millisecond
	cfg := Config{Delay: 50 * time.Millisecond, Reorder: 0.1, Early: 20 * time.Millisecond}
	overtaking := 0
	latest := time.Duration(0)
	for n, at := range sendAll(NewLink(cfg, 1), packets, pace) {
		took := at - time.Duration(n)*pace
		if took > cfg.Delay || took <= cfg.Delay-cfg.Early {
			t.Fatalf("packet %d took %v", n, took)
		}
		if at < latest {
			overtaking++
		}
		latest = max(latest, at)
	}
	// All but those that are early by less than the pace.
	near(t, "share of packets that overtake another", float64(overtaking)/packets, 0.1*0.95, 0.05)

	cfg.Early = 0
	for n, at := range sendAll(NewLink(cfg, 1), 1000, pace) {
		if took := at - time.Duration(n)*pace; took != 0 && took != cfg.Delay {
			t.Fatalf("packet %d took %v, want all of the delay or nothing", n, took)
		}
	}
}
