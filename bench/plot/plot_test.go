package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/result"
)

// echoes returns times around a median, and when the keys were typed.
func echoes(n int, median float64) (values, at []float64) {
	rng := rand.New(rand.NewPCG(1, uint64(median)))
	for i := range n {
		values = append(values, median*math.Exp(0.2*rng.NormFloat64()))
		at = append(at, 0.2*float64(i))
	}
	return values, at
}

func series(name string, median float64) Series {
	values, at := echoes(300, median)
	return Series{Name: name, Color: Program(name), Values: values, At: at}
}

// drawn is what an SVG document shows.
type drawn struct {
	texts, colors []string
	paths         int
}

// An element is one of an SVG document.
type element struct {
	XMLName xml.Name
	Style   string    `xml:"style,attr"`
	Text    string    `xml:",chardata"`
	Inner   []element `xml:",any"`
}

func (d *drawn) add(e element) {
	switch e.XMLName.Local {
	case "text":
		d.texts = append(d.texts, e.Text)
	case "path":
		d.paths++
	}
	if _, c, ok := strings.Cut(e.Style, "stroke:#"); ok {
		d.colors = append(d.colors, "#"+c[:6])
	}
	for _, inner := range e.Inner {
		d.add(inner)
	}
}

func parse(t *testing.T, svg []byte) (d drawn) {
	t.Helper()
	var whole element
	if err := xml.Unmarshal(svg, &whole); err != nil {
		t.Fatalf("%v in %s", err, svg)
	}
	d.add(whole)
	return d
}

func svg(t *testing.T, c *Chart) drawn {
	t.Helper()
	b, err := c.svg()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, b)
}

func wantTexts(t *testing.T, d drawn, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !slices.Contains(d.texts, want) {
			t.Errorf("no %q among %q", want, d.texts)
		}
	}
}

func hex(c color.Color) string {
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8)
}

func TestCDFHasSeriesUnitsAndRoundTrip(t *testing.T) {
	d := svg(t, CDF("typing <5 % loss>", 60, []Series{series("quicterm", 62), series("mosh", 70), {Name: "ssh, never", Color: Program("ssh")}}))
	wantTexts(t, d, "typing <5 % loss>", "quicterm", "mosh", "ssh, never", "round trip, 60 ms",
		"time from the key to its echo", "100 ms", "share of the keys", "50 %")
	for _, program := range []string{"quicterm", "mosh"} {
		if !slices.Contains(d.colors, hex(Program(program))) {
			t.Errorf("%s is not drawn in its colour %s: %v", program, hex(Program(program)), d.colors)
		}
	}
}

func TestGrowthHasSeriesAndSizes(t *testing.T) {
	at := []float64{1000, 1, 10} // in any order
	d := svg(t, Growth("how cost grows", "sessions", []Series{
		{Name: "memory, MiB", Color: Step(0, 2), At: at, Values: []float64{4000, 4, 40}},
		{Name: "back, ms", Color: Step(1, 2), At: at, Values: []float64{0, 90, 100}},
	}))
	wantTexts(t, d, "how cost grows", "sessions", "memory, MiB", "back, ms", "1", "100", "1k")
}

func TestDashedSeriesAreDashed(t *testing.T) {
	s := series("mosh", 70)
	dashes := func() int {
		b, err := CDF("typing", 0, []Series{s}).svg()
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("stroke-dasharray"))
	}
	if n := dashes(); n != 0 {
		t.Errorf("%d dashed lines", n)
	}
	s.Dashed = true
	if n := dashes(); n != 2 {
		t.Errorf("%d dashed lines, want the curve and its line in the legend", n)
	}
}

func TestTimelineHasSeriesUnitsAndEvents(t *testing.T) {
	events := []result.Event{{At: 10, What: "black hole"}, {At: 40, What: "link is back"}}
	few := series("quicterm", 62)
	few.Values, few.At = few.Values[:3], few.At[:3]
	d := svg(t, Timeline("roam", events, []Series{few, {Name: "et", Color: Program("et")}}))
	wantTexts(t, d, "roam", "quicterm", "et", "black hole", "link is back", "when the key was typed", "time to its echo", "10 s", "20 s", "30 s", "40 s", "50 ms")
	more := svg(t, Timeline("roam", events, []Series{series("quicterm", 62), {Name: "et", Color: Program("et")}}))
	if more.paths < 300 || d.paths > 100 {
		t.Errorf("%d paths for 300 echoes, %d for 3", more.paths, d.paths)
	}
}

func TestDistribution(t *testing.T) {
	values := make([]float64, 10_000)
	for i := range values {
		values[len(values)-1-i] = float64(i + 1)
	}
	xys := distribution(values)
	if len(xys) != steps+1 {
		t.Errorf("%d points", len(xys))
	}
	if first, middle, last := xys[0], xys[steps/2], xys[steps]; first.X != 1 || first.Y != 0 || middle.X != 5000 || middle.Y != 50 || last.X != 10_000 || last.Y != 100 {
		t.Errorf("from %v by way of %v to %v", first, middle, last)
	}
	if xys := distribution([]float64{3, -1}); len(xys) != 3 || xys[1].X != floor || xys[1].Y != 50 || xys[2].X != 3 || xys[2].Y != 100 {
		t.Errorf("two values make %v", xys)
	}
}

func TestAxis(t *testing.T) {
	for _, c := range []struct{ v, down, up float64 }{{1, 1, 1}, {1.1, 1, 2}, {3, 2, 5}, {60, 50, 100}, {999, 500, 1000}, {1000, 1000, 1000}, {0.1, 0.1, 0.1}, {0.3, 0.2, 0.5}} {
		if down, up := roundDown(c.v), roundUp(c.v); math.Abs(down-c.down) > 1e-9 || math.Abs(up-c.up) > 1e-9 {
			t.Errorf("%v is rounded to %v and %v, want %v and %v", c.v, down, up, c.down, c.up)
		}
	}
	labels := func(from, to float64) string {
		var all []string
		for _, t := range ticks(from, to) {
			if t.Label != "" && t.Value <= to {
				all = append(all, t.Label)
			}
		}
		return strings.Join(all, ", ")
	}
	if got, want := labels(50, 2000), "50 ms, 100 ms, 200 ms, 500 ms, 1 s, 2 s"; !strings.HasSuffix(got, want) {
		t.Errorf("ticks %s, want %s", got, want)
	}
	if got, want := labels(0.1, 1000), "0.1 ms, 1 ms, 10 ms, 100 ms, 1 s"; got != want {
		t.Errorf("ticks %s, want %s", got, want)
	}
}

// Charts of no echoes, one, equal ones, and none at all are drawn.
func TestFewValues(t *testing.T) {
	for _, values := range map[string][]float64{"none": nil, "one": {60}, "equal": {60, 60, 60}, "zero": {0}, "long": {1, 1e6}} {
		s := []Series{{Name: "quicterm", Color: Program("quicterm"), Values: values, At: values}}
		charts := []*Chart{CDF("few", 0, s), Timeline("few", nil, s)}
		for _, c := range charts {
			wantTexts(t, svg(t, c), "quicterm")
			if c == charts[0] {
				wantTexts(t, svg(t, c), "50 %", "100 %")
			}
		}
	}
}

func TestColors(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"quicterm", "ssh", "mosh", "et", "tssh"} {
		c := hex(Program(name))
		if other := seen[c]; other != "" || c == "#FFFFFF" {
			t.Errorf("%s has the colour %s of %s", name, c, other)
		}
		seen[c] = name
	}
	if Program("eternal") != Program("eternal") {
		t.Error("a program has two colours")
	}
	for n := 1; n < 8; n++ {
		for i := 1; i < n; i++ {
			if Step(i, n) == Step(i-1, n) {
				t.Errorf("steps %d and %d of %d have the same colour", i-1, i, n)
			}
		}
	}
}

func TestSave(t *testing.T) {
	path := filepath.Join(t.TempDir(), "typing.svg")
	if err := CDF("typing", 60, []Series{series("quicterm", 62)}).Save(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, parse(t, b), "quicterm")
	if !bytes.Contains(b, []byte("fill:#FFFFFF")) {
		t.Error("the image has no background of its own for dark pages")
	}
	err = CDF("typing", 60, nil).Save(filepath.Join(t.TempDir(), "no", "folder.svg"))
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "folder.svg") {
		t.Errorf("saved where there is no folder: %v", err)
	}
}
