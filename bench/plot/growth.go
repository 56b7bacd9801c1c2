package plot

import (
	"slices"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Growth draws values against what grows, both on logarithmic scales: on them, what grows linearly
// has a slope of 1. The At of a series are the sizes. Values of 0 are left out.
func Growth(title, what string, series []Series) *Chart {
	c := newChart(title)
	for i, s := range series {
		line := &plotter.Line{LineStyle: s.style()}
		dots := &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: s.Color, Radius: 2.5, Shape: shapes[i%len(shapes)]}}
		for k, v := range s.Values {
			if v > 0 && s.At[k] > 0 {
				line.XYs = append(line.XYs, plotter.XY{X: s.At[k], Y: v})
			}
		}
		slices.SortFunc(line.XYs, func(a, b plotter.XY) int { return int(a.X - b.X) })
		dots.XYs = line.XYs
		c.legend.Add(s.Name, line, dots)
		if len(line.XYs) > 0 {
			c.plot.Add(line, dots)
		}
	}
	for _, a := range []struct {
		axis  *gonum.Axis
		label string
	}{{&c.plot.X, what}, {&c.plot.Y, ""}} {
		milliseconds(a.axis, a.label)
		a.axis.Tick.Marker = gonum.TickerFunc(numbers)
	}
	return c
}

// numbers are ticks without a unit.
func numbers(from, to float64) []gonum.Tick {
	all := ticks(from, to)
	for i := range all {
		if all[i].Label != "" {
			all[i].Label = number(all[i].Value)
		}
	}
	return all
}
