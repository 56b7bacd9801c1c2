//go:build linux

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/scenario"
)

func TestList(t *testing.T) {
	typing := quicterm(scenario.Scenario{Name: "typing", Link: netem.Config{Delay: 50 * time.Millisecond},
		Bounds: []scenario.Bound{
			{Metric: "truth", Quantile: 0.5, RTTs: 1, Plus: 10},
			{Metric: "wire", Quantile: 1, Plus: 12000},
			{Metric: "truth", Quantile: 0.99, RTTs: 1.25},
		}})
	var out strings.Builder
	if err := new(Suite).List(&out, []scenario.Scenario{typing, quicterm(scenario.Scenario{Name: "idle"})}); err != nil {
		t.Fatal(err)
	}
	const want = `
SCENARIO  MEASURED  BOUND
typing    truth     p50 110, p99 125
          wire      max 12000
idle
`
	if out.String() != want[1:] {
		t.Errorf("got\n%s\nwant%s", &out, want)
	}
}
