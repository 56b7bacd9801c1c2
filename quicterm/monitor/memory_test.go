//go:build linux || darwin

package monitor

import (
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// An account is refused a new session only for what its own holders take or claim.
func TestMemoryByAccount(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		why      string
		claimed  uint64 // by each of 20 holders of account 1
		accounts map[uint32]uint64
		refused  bool
	}{
		{why: "nobody uses any"},
		{"less than all", 2 * mib, map[uint32]uint64{1: 30 * mib}, false},
		{"all of it", 5 * mib, nil, true},
		{"claims nothing and takes all", 0, map[uint32]uint64{1: 100 * mib}, true},
		{"another account takes all", 0, map[uint32]uint64{2: 5000 * mib}, false},
		{"another account takes all, and this one its part", 0, map[uint32]uint64{1: 49 * mib, 2: 5000 * mib}, false},
		{"another account takes all, and this one more than its part", 0, map[uint32]uint64{1: 50 * mib, 2: 5000 * mib}, true},
		{"many accounts take little", 4 * mib, map[uint32]uint64{2: 1, 3: 1, 4: 1, 5: 1}, false},
	}
	onHostile(t, func(h *host, bad *hostile) {
		h.server.memory.limit = 100 * mib
		for _, test := range tests {
			bad.memory = test.accounts
			h.server.memory.readAt = h.server.memory.readAt.Add(-memoryAge)
			own := make([]entry, 20)
			for i := range own {
				own[i].state.Memory = test.claimed
			}
			err := h.server.checkMemory(1, own)
			if (err != nil) != test.refused {
				t.Errorf("%s: %v", test.why, err)
			}
			if err != nil && !strings.Contains(err.Error(), "max_buffer_total is 25%") {
				t.Errorf("%s: %v does not name the setting", test.why, err)
			}
		}
	})
}

// A session is started without a question to the holders of other accounts, and whatever
// the account's own holders claim, each counts as one buffer at most.
func TestClaimsAreClamped(t *testing.T) {
	onHostile(t, func(h *host, bad *hostile) {
		h.server.memory.limit = 3*int64(h.settings.BufferSize.Bytes) + 1<<20
		for range 3 {
			bad.state(t, func(s *wire.State, _ *wire.Info) { s.Memory = 1<<64 - 1 })
		}
		h.attach()
		asks := h.holders.Asks()
		h.attach()
		if n := h.holders.Asks() - asks; n != 2 { // a Query of the first, the Attach of the second
			t.Errorf("a new session made %d requests to holders of memory, want 2", n)
		}
	})
}
