// Package plot draws how long echoes took: the share that came within a time, or when the
// keys were typed whose echoes took long.
//
// It promises SVG files that are legible on light and dark pages, with units on the axes,
// and one colour for a program in all of them. Times of echoes are in milliseconds, on a
// logarithmic scale.
package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"os"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 8 * vg.Inch
	height = 4 * vg.Inch
	margin = vg.Length(10)
)

// A Series is one line of the legend.
type Series struct {
	Name   string
	Color  color.Color
	Dashed bool // to tell it from a series of the same colour

	Values []float64 // milliseconds; without any, only the legend shows it
	At     []float64 // when each was typed, seconds; for a timeline
}

// A Chart can be drawn.
type Chart struct {
	plot   *gonum.Plot
	legend gonum.Legend
}

// newChart returns a chart without series.
func newChart(title string) *Chart {
	p := gonum.New()
	p.Title.Text = title
	p.Title.Padding = margin
	p.BackgroundColor = color.White // on a dark page too
	for _, s := range []struct {
		style *text.Style
		size  vg.Length
	}{
		{&p.Title.TextStyle, 13},
		{&p.X.Label.TextStyle, 11}, {&p.X.Tick.Label, 10},
		{&p.Y.Label.TextStyle, 11}, {&p.Y.Tick.Label, 10},
	} {
		s.style.Font = face(s.size)
	}
	c := &Chart{plot: p, legend: gonum.NewLegend()}
	c.legend.TextStyle.Font = face(10)
	c.legend.Top = true
	c.legend.Left = true
	c.legend.Padding = 4
	c.legend.ThumbnailWidth = 20
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = pale, pale
	p.Add(grid)
	return c
}

func face(size vg.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

// style is that of the lines of a series.
func (s *Series) style() draw.LineStyle {
	style := draw.LineStyle{Color: s.Color, Width: 1.5}
	if s.Dashed {
		style.Dashes = []vg.Length{4, 3}
	}
	return style
}

// draw draws the chart, with the legend on the right.
func (c *Chart) draw(on vg.CanvasSizer) {
	canvas := draw.New(on)
	canvas.SetColor(c.plot.BackgroundColor)
	canvas.Fill(canvas.Rectangle.Path())
	inner := draw.Crop(canvas, margin, -margin, margin, -margin)
	legend := c.legend.Rectangle(inner).Size().X
	c.plot.Draw(draw.Crop(inner, 0, -legend-2*margin, 0, 0))
	title := c.plot.Title.TextStyle.Rectangle(c.plot.Title.Text).Size().Y + c.plot.Title.Padding
	c.legend.Draw(draw.Crop(inner, inner.Size().X-legend, 0, 0, -title))
}

// svg returns the chart as an SVG document.
func (c *Chart) svg() ([]byte, error) {
	canvas := vgsvg.New(width, height)
	c.draw(canvas)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	// Fonts of the same widths are everywhere, but not by this name.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// Save writes the chart to an SVG file.
func (c *Chart) Save(path string) error {
	b, err := c.svg()
	if err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return nil
}
