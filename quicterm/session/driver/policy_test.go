package driver

import (
	"testing"
	"time"
)

const far = 50 * time.Millisecond

func TestPolicyPath(t *testing.T) {
	tests := []struct {
		why  string
		mode Compression
		n    int
		rtt  time.Duration
		rate float64
		want bool
	}{
		{"off", Off, 60_000, far, 1e5, false},
		{"on, whatever the path", On, 60_000, 0, 1e9, true},
		{"on, a line", On, 64, far, 1e5, true},
		{"on, a few keys", On, 63, far, 1e5, false},
		{"slow", Auto, 60_000, far, 1e5, true},
		{"rate not known", Auto, 60_000, far, 0, true},
		{"path not known, a screen", Auto, 60_000, 0, 0, true},
		{"path not known, a few lines", Auto, minUnknown - 1, 0, 0, false},
		{"near", Auto, 60_000, nearRTT - 1, 1e5, false},
		{"fast", Auto, 60_000, far, 1e8, false},
		{"a line", Auto, 255, far, 1e5, false},
		{"a few lines", Auto, 256, far, 1e5, true},
	}
	for _, test := range tests {
		if got := new(policy).compress(test.mode, test.n, test.rtt, test.rate); got != test.want {
			t.Errorf("%s: %v", test.why, got)
		}
	}
}

// The log goes faster than the path while it is compressed. That is no reason to
// stop.
func TestPolicyRateOfPath(t *testing.T) {
	var p policy
	for range 100 {
		p.sent(60_000, 6_000)
	}
	if !p.compress(Auto, 60_000, far, 9*fastRate) {
		t.Error("not compressed although the path is slow")
	}
	if p.compress(Auto, 60_000, far, 11*fastRate) {
		t.Error("compressed although the path is fast")
	}
	for range 100 {
		p.sent(60_000, 60_000)
	}
	if p.compress(Auto, 60_000, far, 1.1*fastRate) {
		t.Error("compressed although the path has become fast")
	}
}

// Writes that do not get shorter are sent plain for a while, then tried again.
func TestPolicyPause(t *testing.T) {
	for _, test := range []struct{ n, want int }{{1000, pauseWrites}, {64 << 10, pauseBytes / (64 << 10)}} {
		var p policy
		for round := range 3 {
			pause := 0
			for ; !p.compress(Auto, test.n, far, 1e5); pause++ {
				p.sent(test.n, test.n)
			}
			if want := min(round, 1) * test.want; pause != want {
				t.Errorf("pause %d of %d writes of %d, want %d", round, pause, test.n, want)
			}
			p.tried(test.n, test.n)
		}
	}
}

// One write of noise in a log does not end its compression, some do.
func TestPolicyMixed(t *testing.T) {
	var p policy
	for range 10 {
		p.tried(10_000, 2_000)
	}
	p.tried(10_000, 10_000)
	if !p.compress(Auto, 10_000, far, 1e5) {
		t.Error("one write that got no shorter ends compression")
	}
	for range 3 {
		p.tried(10_000, 10_000)
	}
	if p.compress(Auto, 10_000, far, 1e5) {
		t.Error("compressed although nothing gets shorter")
	}
}
