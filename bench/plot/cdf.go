package plot

import (
	"fmt"
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// steps is how many steps a curve has at most, which is more than can be seen.
const steps = 1000

// CDF draws which share of each series' keys were echoed within a time. A line shows
// the round trip of the link, in milliseconds, if it is not 0.
func CDF(title string, rtt float64, series []Series) *Chart {
	c := newChart(title)
	lines := make([]*plotter.Line, len(series))
	for i, s := range series {
		lines[i] = &plotter.Line{StepStyle: plotter.PostStep, LineStyle: s.style()}
		if len(s.Values) > 0 {
			lines[i].XYs = distribution(s.Values)
		}
		c.legend.Add(s.Name, lines[i])
	}
	for _, line := range slices.Backward(lines) { // the first is on top
		if len(line.XYs) > 0 {
			c.plot.Add(line)
		}
	}
	if rtt > 0 {
		c.plot.Add(mark{at: max(rtt, floor), label: fmt.Sprintf("round trip, %.3g ms", rtt)})
	}
	milliseconds(&c.plot.X, "time from the key to its echo")
	y := &c.plot.Y
	y.Label.Text = "share of the keys"
	y.Min, y.Max = 0, 100
	y.Tick.Marker = gonum.ConstantTicks{
		{Value: 0, Label: "0 %"}, {Value: 25, Label: "25 %"}, {Value: 50, Label: "50 %"},
		{Value: 75, Label: "75 %"}, {Value: 90, Label: "90 %"}, {Value: 100, Label: "100 %"},
	}
	return c
}

// distribution returns a curve that rises from 0 to 100 percent.
func distribution(values []float64) plotter.XYs {
	sorted := slices.Sorted(slices.Values(values))
	n := min(len(sorted), steps)
	xys := plotter.XYs{{X: max(sorted[0], floor), Y: 0}}
	for i := 1; i <= n; i++ {
		rank := i * len(sorted) / n
		xys = append(xys, plotter.XY{X: max(sorted[rank-1], floor), Y: 100 * float64(rank) / float64(len(sorted))})
	}
	return xys
}
