package plot

import (
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/quicterm/quicterm/bench/result"
)

// Timeline draws how long each echo took against when its key was typed, and what
// happened meanwhile.
func Timeline(title string, events []result.Event, series []Series) *Chart {
	c := newChart(title)
	dots := make([]*plotter.Scatter, len(series))
	for i, s := range series {
		dots[i] = &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: s.Color, Radius: 2, Shape: shapes[i%len(shapes)]}}
		for k, v := range s.Values {
			dots[i].XYs = append(dots[i].XYs, plotter.XY{X: s.At[k], Y: max(v, floor)})
		}
		c.legend.Add(s.Name, dots[i])
	}
	for _, d := range slices.Backward(dots) { // the first is on top
		if len(d.XYs) > 0 {
			c.plot.Add(d)
		}
	}
	for i, e := range events {
		c.plot.Add(mark{at: e.At, label: e.What, low: i%2 == 1})
	}
	seconds(&c.plot.X, "when the key was typed")
	milliseconds(&c.plot.Y, "time to its echo")
	return c
}

// shapes tell series apart where colours do not.
var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.PlusGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.SquareGlyph{},
}
