//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/result"
)

func reportCommand() *cobra.Command {
	var readme string
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Draw a file of results, and write its tables as Markdown",
		Long: `Draw a file of results, beside which the plots go, and write its tables as Markdown: of
each scenario as it was measured last.

With --readme, the tables go into a file between the two comments
<!-- results of NAME --> and <!-- end of NAME -->, where NAME is that of the file of
results without its folder and ending.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, plots, err := drawResults(c.ErrOrStderr(), args[0])
			if err != nil {
				return err
			}
			if readme == "" {
				text, err := r.markdown(args[0], ".", plots)
				if err == nil {
					_, err = c.OutOrStdout().Write([]byte(text))
				}
				return err
			}
			text, err := r.markdown(args[0], filepath.Dir(readme), plots)
			if err != nil {
				return err
			}
			return replaceIn(readme, filepath.Base(withoutEnding(args[0])), text)
		},
	}
	c.Flags().StringVar(&readme, "readme", "", "put the tables into this `file`")
	return c
}

// drawResults draws a file of results, and returns what it reports and the plots.
func drawResults(w io.Writer, path string) (*report, []drawing, error) {
	records, err := readResults(w, path)
	if err != nil {
		return nil, nil, err
	}
	r := newReport(records)
	if len(r.programs) == 0 {
		return nil, nil, fmt.Errorf("%s: no sessions were measured", path)
	}
	plots, err := r.draw(withoutEnding(path))
	return r, plots, err
}

func withoutEnding(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) }

// replaceIn replaces what a file has between two comments.
func replaceIn(path, name, text string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- results of %s -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	before, rest, begun := strings.Cut(string(b), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended || strings.Contains(rest, begin) || strings.Contains(after, end) {
		return fmt.Errorf("%s: the tables go where these two lines are, once each, one after the other:\n%s%s", path, begin, end)
	}
	whole := before + begin + text + end + after
	if whole == string(b) {
		return nil
	}
	// A full disk leaves the file as it was.
	next := path + ".new"
	defer os.Remove(next)
	if err := os.WriteFile(next, []byte(whole), 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// A report is of what each program did last in each scenario.
type report struct {
	scenarios, programs []string
	records             []result.Record

	emulator, micro []result.Record // what else was measured last
}

func newReport(records []result.Record) *report {
	type played struct{ scenario, program string }
	last := make(map[played]time.Time)
	for _, r := range records {
		last[played{r.Scenario, r.Program}] = r.Time
	}
	rep := new(report)
	for _, r := range records {
		switch {
		case !r.Time.Equal(last[played{r.Scenario, r.Program}]):
			continue
		case r.Scenario == emulatedLink:
			rep.emulator = append(rep.emulator, r)
			continue
		case isMicro(r):
			rep.micro = append(rep.micro, r)
			continue
		}
		rep.records = append(rep.records, r)
		if !slices.Contains(rep.scenarios, r.Scenario) {
			rep.scenarios = append(rep.scenarios, r.Scenario)
		}
		if !slices.Contains(rep.programs, r.Program) {
			rep.programs = append(rep.programs, r.Program)
		}
	}
	inOrder(rep.scenarios, scenarios, func(s scenario) string { return s.name })
	inOrder(rep.programs, peers, func(p peer) string { return p.name() })
	return rep
}

// inOrder sorts names as they are in a list. Others come first.
func inOrder[T any](names []string, list []T, name func(T) string) {
	place := func(n string) int { return slices.IndexFunc(list, func(one T) bool { return name(one) == n }) }
	slices.SortStableFunc(names, func(a, b string) int { return place(a) - place(b) })
}

// isMicro says whether a record is of a Go benchmark, whose name begins with its package.
func isMicro(r result.Record) bool {
	name, _, _ := strings.Cut(r.Scenario, " ")
	return slices.Contains(microPackages, name)
}

// of returns the records of a scenario.
func (r *report) of(scenario string) (all []result.Record) {
	for _, one := range r.records {
		if one.Scenario == scenario {
			all = append(all, one)
		}
	}
	return all
}

// find returns one of some records.
func find(records []result.Record, program, metric string) (result.Record, bool) {
	i := slices.IndexFunc(records, func(r result.Record) bool { return r.Program == program && r.Metric == metric })
	if i < 0 {
		return result.Record{}, false
	}
	return records[i], true
}

// lost returns the record that says why a program did not do a scenario.
func lost(records []result.Record, program string) (result.Record, bool) {
	i := slices.IndexFunc(records, func(r result.Record) bool {
		return r.Program == program && (r.Verdict == result.Never || r.Verdict == result.Failed)
	})
	if i < 0 {
		return result.Record{}, false
	}
	return records[i], true
}
