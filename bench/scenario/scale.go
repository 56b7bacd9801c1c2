//go:build linux

package scenario

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/work"
)

// scale is how cost grows: with sessions, the size of rings, the round trip, and clients that come
// back at once. It takes a quarter of an hour.
var scale = slices.Concat(
	grow("sessions", []int{1, 10, 100, 1000}, func(n int) Scenario {
		const each = 12 << 20 // bytes of all its processes, with the program that runs in it
		return Scenario{
			Sessions: n, Alone: true, Work: work.Crowd{Pace: time.Second, Keys: 10},
			Needs: func() error { return needsMemory(n * each) },
		}
	}),
	grow("MiB of ring", []int{1, 8, 64, 512}, func(mib int) Scenario {
		return Scenario{
			Alone: true, Work: work.Ring{Size: mib << 20},
			Program: program.Quicterm{Daemon: map[string]string{"buffer_size": fmt.Sprintf(`"%dMiB"`, mib)}},
			Needs:   func() error { return needsMemory(2 * mib << 20) },
		}
	}),
	grow("ms of round trip", []int{1, 10, 50, 100, 200, 400, 800}, func(ms int) Scenario {
		return Scenario{
			Link: netem.Config{Delay: time.Duration(ms) * time.Millisecond / 2}, Sessions: 2,
			Work:   work.Typing{Pace: pace, Spans: work.Keys(50, pace)},
			Bounds: []Bound{{Metric: "truth", Quantile: 0.5, RTTs: 1, Plus: 10}},
		}
	}),
	grow("clients that return", []int{1, 10, 100, 500}, func(n int) Scenario {
		return Scenario{
			Alone: true, Work: work.Returning{Clients: n, Outage: 10 * time.Second, Within: time.Second},
			Bounds: []Bound{{Metric: "back", Quantile: 1, Plus: 3000}},
		}
	}),
)

// grow returns a scenario for each size of what grows.
func grow(what string, sizes []int, scenario func(size int) Scenario) (all []Scenario) {
	for _, size := range sizes {
		s := scenario(size)
		s.Name, s.Growth, s.Size = fmt.Sprintf("%d %s", size, what), what, float64(size)
		all = append(all, s)
	}
	return all
}

// needsMemory reports why so many bytes cannot be used here, or nil.
func needsMemory(need int) error {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return err
	}
	_, after, _ := bytes.Cut(b, []byte("MemAvailable:"))
	var kib int
	if _, err := fmt.Sscan(string(after), &kib); err != nil {
		return fmt.Errorf("the available memory is not known: %w", err)
	}
	if kib<<10 < need {
		return fmt.Errorf("%d MiB of memory are available, and %d are needed", kib>>10, need>>20)
	}
	return nil
}
