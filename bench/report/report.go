//go:build linux

// Package report turns records into tables: for the terminal, as Markdown
// between two comments of a page, and as a comparison of two files.
package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/bench/result"
)

// Options are where a report goes and what it is like.
type Options struct {
	Scenarios []string // names, in the order of the tables
	Programs  []string
	Page      string // Markdown file that gets the tables; "" means they are written out
	Summary   bool   // a short table
}

// Write writes the tables of a file of records as
// Markdown: of each scenario as it was measured last. They go to out, or into a page between
// <!-- results of NAME --> and <!-- end of NAME -->, where NAME is that of the file without
// its folder and ending. A summary goes between <!-- summary of NAME --> and
// <!-- end of summary of NAME -->.
func Write(out, warnings io.Writer, path string, o Options) error {
	records, err := read(warnings, path)
	if err != nil {
		return err
	}
	r, err := newReport(path, records, o)
	if err != nil {
		return err
	}
	if r.folder, err = relative(filepath.Dir(o.Page), filepath.Dir(path)); err != nil {
		return err
	}
	markdown, begin, end := r.markdown, "results of", "end of"
	if o.Summary {
		markdown, begin, end = r.summary, "summary of", "end of summary of"
	}
	text := markdown()
	if o.Page == "" {
		_, err := io.WriteString(out, text)
		return err
	}
	return replaceIn(o.Page, fmt.Sprintf("<!-- %s %s -->\n", begin, r.name), fmt.Sprintf("<!-- %s %s -->\n", end, r.name),
		text)
}

// relative returns a path from a folder.
func relative(folder, path string) (string, error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

// read reads a file of records, and warns of half a line at its end.
func read(warnings io.Writer, path string) ([]result.Record, error) {
	records, err := result.Read(path)
	if errors.Is(err, result.ErrHalfLine) {
		fmt.Fprintln(warnings, "bench:", err)
		err = nil
	}
	if err == nil && len(records) == 0 {
		err = fmt.Errorf("%s: no results", path)
	}
	return records, err
}

// Publish replaces, in a file of records, those of the scenarios and programs that another file has. Of these it
// takes what was measured last.
func Publish(warnings io.Writer, from, to string) error {
	fresh, err := read(warnings, from)
	if err != nil {
		return err
	}
	old, err := result.Read(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var whole bytes.Buffer
	for _, r := range lastOf(append(old, fresh...)) {
		if err := result.Append(&whole, r); err != nil {
			return err
		}
	}
	return replace(to, whole.Bytes())
}

// lastOf returns the records of each program in each scenario that were measured last.
func lastOf(records []result.Record) []result.Record {
	type key struct{ scenario, program string }
	last := make(map[key]time.Time)
	for _, r := range records {
		last[key{r.Scenario, r.Program}] = r.Time
	}
	return selected(records, func(r result.Record) bool { return r.Time.Equal(last[key{r.Scenario, r.Program}]) })
}

// replaceIn replaces what a page has between two lines.
func replaceIn(page, begin, end, text string) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(b), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended || strings.Contains(rest, begin) || strings.Contains(after, end) {
		return fmt.Errorf("%s: the tables go between these two lines, which must be there once each:\n%s%s", page, begin, end)
	}
	whole := before + begin + text + end + after
	if whole == string(b) {
		return nil
	}
	return replace(page, []byte(whole))
}

// replace writes a file. A full disk leaves it as it was.
func replace(file string, content []byte) error {
	next := file + ".new"
	defer os.Remove(next)
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// A report is what each program did last in each scenario.
type report struct {
	file, name          string // the file of records without its folder, and without its ending
	folder              string // of the file, seen from the page
	scenarios, programs []string
	records             []result.Record
}

func newReport(path string, records []result.Record, o Options) (*report, error) {
	file := filepath.Base(path)
	rep := &report{file: file, name: strings.TrimSuffix(file, filepath.Ext(file))}
	for _, r := range lastOf(records) {
		rep.records = append(rep.records, r)
		rep.scenarios = appendNew(rep.scenarios, r.Scenario)
		rep.programs = appendNew(rep.programs, r.Program)
	}
	if len(rep.programs) == 0 {
		return nil, fmt.Errorf("%s: no sessions were measured", path)
	}
	sortAs(rep.scenarios, o.Scenarios)
	sortAs(rep.programs, o.Programs)
	return rep, nil
}

// appendNew appends a text unless it is there already.
func appendNew(texts []string, text string) []string {
	if slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}

// sortAs sorts names as they are in a list. Others come last.
func sortAs(names, list []string) {
	place := func(name string) int {
		if i := slices.Index(list, name); i >= 0 {
			return i
		}
		return len(list)
	}
	slices.SortStableFunc(names, func(a, b string) int { return place(a) - place(b) })
}

// bounded reports whether the records are of a program that is to keep bounds. Otherwise
// programs are compared.
func (r *report) bounded() bool {
	return len(r.programs) == 1 || slices.ContainsFunc(r.records, func(one result.Record) bool { return one.Bound != "" })
}

// of returns the records of a scenario.
func (r *report) of(scenario string) []result.Record {
	return selected(r.records, func(one result.Record) bool { return one.Scenario == scenario })
}

// find returns one of some records.
func find(records []result.Record, program, metric string) (result.Record, bool) {
	return first(records, func(r result.Record) bool { return r.Program == program && r.Metric == metric })
}

// lost returns the record that says why a program did not do a scenario.
func lost(records []result.Record, program string) (result.Record, bool) {
	return first(records, func(r result.Record) bool {
		return r.Program == program && (r.Verdict == result.Never || r.Verdict == result.Failed)
	})
}

func first(records []result.Record, is func(result.Record) bool) (result.Record, bool) {
	if i := slices.IndexFunc(records, is); i >= 0 {
		return records[i], true
	}
	return result.Record{}, false
}

// selected returns the records that are of a kind.
func selected(records []result.Record, is func(result.Record) bool) (all []result.Record) {
	for _, r := range records {
		if is(r) {
			all = append(all, r)
		}
	}
	return all
}
