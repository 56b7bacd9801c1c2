//go:build linux || darwin

package monitor

import (
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func TestStartedForgets(t *testing.T) {
	var s started
	now := time.Unix(0, 0)
	for i := range 100_000 {
		s.add(now, starter{uint32(i), wire.InstanceID{1}})
		s.add(now, starter{uint32(i), wire.InstanceID{}})
		now = now.Add(time.Second)
	}
	if n := len(s.at); n > 121 {
		t.Errorf("%d clients are remembered, want those of two minutes", n)
	}
	if s.has(starter{99_999, wire.InstanceID{}}) || !s.has(starter{99_999, wire.InstanceID{1}}) {
		t.Error("want clients with an instance to be remembered, and no others")
	}
}
