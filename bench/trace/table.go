package trace

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
)

// Networks are those over which predictions are scored.
var Networks = []Network{
	{RTT: 100 * time.Millisecond},
	{RTT: 100 * time.Millisecond, Loss: 0.05},
	{RTT: 300 * time.Millisecond},
	{RTT: 300 * time.Millisecond, Loss: 0.05},
}

// Score replays traces over networks with the client's predictions, and adds up the results.
func Score(studies []*Study, networks []Network) *Result {
	total := new(Result)
	for i, t := range studies {
		for _, n := range networks {
			n.Seed += uint64(i)
			total.Add(t.Replay(predict.New(predict.Adaptive), n))
		}
	}
	return total
}

// A Line is a row of a table.
type Line struct {
	Name string
	*Result
}

// WriteTable writes a table of results.
func WriteTable(w io.Writer, lines []Line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tkeys\ttyping\tall\twrong cells\ttheir life\tredrawn\trestyled\tsecrets\tunequal\tCPU\t")
	fmt.Fprintln(t, "\t\tdrawn\tdrawn\tper 1000\tms per 1000\tper 1000\tper 1000\tdrawn\tends\tper key\t")
	for _, l := range lines {
		r := l.Result
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%.1f\t%.0f\t%.1f\t%.1f\t%d of %d\t%d\t%.1f µs\t\n", l.Name, r.Keys,
			percent(r.TypingDrawn, r.Typing), percent(r.Drawn, r.Keys),
			r.Per1000(float64(r.Wrong)), r.Per1000(float64(r.WrongFor.Microseconds())/1000),
			r.Per1000(float64(r.Redrawn)), r.Per1000(float64(r.Restyled)),
			r.SecretsDrawn, r.Secrets, r.Unequal, float64(r.CPU.Microseconds())/float64(max(1, r.Inputs)))
	}
	return t.Flush()
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

// WriteMisses writes the worst misses of each kind: wrong cells by how long they were seen, redrawn
// ones, typing keys and other keys that were not drawn at once.
func WriteMisses(w io.Writer, misses []Miss, most int) {
	misses = slices.Clone(misses)
	slices.SortStableFunc(misses, func(a, b Miss) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.For, a.For))
	})
	written := map[MissKind]int{}
	for _, m := range misses {
		if written[m.Kind]++; written[m.Kind] > most {
			continue
		}
		fmt.Fprintf(w, "%s: %v, key %d", m.Kind[2:], m.At.Round(time.Millisecond), m.Key)
		if m.Kind <= Redrawn {
			fmt.Fprintf(w, ", %d cells, %v", m.Cells, m.For.Round(time.Millisecond))
		}
		fmt.Fprintf(w, ", after %s\n  client %s\n  drawn  %s\n  truth  %s\n", m.Typed, m.Row, m.Drawn, m.Truth)
	}
}
