package plot

import (
	"fmt"
	"math"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// floor is the shortest time that is drawn, in milliseconds: what is shorter is as
// good as nothing, for which a logarithmic scale has no place.
const floor = 0.1

// milliseconds gives an axis a logarithmic scale, once the chart has all its data.
func milliseconds(a *gonum.Axis, label string) {
	if a.Min > a.Max { // there is no data
		a.Min, a.Max = 1, 1000
	}
	a.Label.Text = label
	a.Scale = gonum.LogScale{}
	const room = 1.2 // for labels, and around a single value
	a.Min, a.Max = roundDown(a.Min/room), roundUp(a.Max*room)
	a.Tick.Marker = gonum.TickerFunc(ticks)
}

// steps125 are where an axis may begin and end, and has labels where there is room.
var steps125 = []float64{1, 2, 5, 10}

// decade returns the greatest power of ten that is not more than v.
func decade(v float64) float64 {
	d := math.Pow10(int(math.Floor(math.Log10(v))))
	if 10*d <= v { // by a rounding error
		d *= 10
	}
	return d
}

func roundDown(v float64) float64 {
	d := decade(v)
	for _, s := range []float64{5, 2} {
		if s*d <= v {
			return s * d
		}
	}
	return d
}

func roundUp(v float64) float64 {
	d := decade(v)
	for _, s := range steps125 {
		if s*d >= v {
			return s * d
		}
	}
	return 10 * d
}

// ticks are at 1, 2, 5 and 10, with labels where there is room for them.
func ticks(from, to float64) []gonum.Tick {
	roomy := to/from <= 1000
	var all []gonum.Tick
	for d := decade(from); d <= to*1.001; d *= 10 {
		for _, s := range steps125[:3] {
			t := gonum.Tick{Value: s * d}
			if s == 1 || roomy {
				t.Label = duration(t.Value)
			}
			all = append(all, t)
		}
	}
	return all
}

// seconds gives an axis even ticks with labels, once the chart has all its data.
func seconds(a *gonum.Axis, label string) {
	a.Label.Text = label
	a.Tick.Marker = gonum.TickerFunc(func(from, to float64) []gonum.Tick {
		const most = 8
		step := roundUp((to - from) / most)
		var all []gonum.Tick
		for i := math.Ceil(from / step); i*step <= to; i++ {
			all = append(all, gonum.Tick{Value: i * step, Label: fmt.Sprintf("%.4g s", i*step)})
		}
		return all
	})
}

// number returns a number with a prefix of its size.
func number(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.4gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.4gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

// duration returns milliseconds as text.
func duration(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.4g s", ms/1000)
	}
	return fmt.Sprintf("%.4g ms", ms)
}

// A mark is a line across the chart, from the bottom to the top, with a label along it.
type mark struct {
	at    float64
	label string
	low   bool // the label is at the bottom
}

// Plot implements gonum's Plotter.
func (m mark) Plot(c draw.Canvas, p *gonum.Plot) {
	toX, _ := p.Transforms(&c)
	x := toX(m.at)
	c.StrokeLine2(draw.LineStyle{Color: dark, Width: 0.8, Dashes: []vg.Length{2, 2}}, x, c.Min.Y, x, c.Max.Y)
	label := p.X.Tick.Label
	label.Color = dark
	label.Rotation = math.Pi / 2
	label.XAlign, label.YAlign = draw.XRight, draw.YBottom
	label.Font = face(9)
	y := c.Max.Y - 2
	if m.low {
		label.XAlign, y = draw.XLeft, c.Min.Y+2
	}
	c.FillText(label, vg.Point{X: x - 2, Y: y}, m.label)
}

// DataRange implements gonum's DataRanger.
func (m mark) DataRange() (xmin, xmax, ymin, ymax float64) {
	return m.at, m.at, math.Inf(1), math.Inf(-1)
}
