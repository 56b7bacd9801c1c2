// Package doctor words what doctor finds: a line for each check, with what was found and what to do about it. A [Host]
// judges what qt has measured of a server and of the paths to it. What is found on the daemon's own machine is judged
// where it is looked at, in package monitor.
package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// A State says how good a finding is.
type State string

// The states. Scripts rely on their names.
const (
	OK   State = "ok"
	Warn State = "warn" // sessions work, and less well than they could
	Fail State = "fail" // sessions do not work
	Skip State = "skip" // it was not checked
)

// A Finding is what was found of one thing.
type Finding struct {
	ID    string `json:"id"` // of the check: scripts rely on it
	State State  `json:"state"`
	Found string `json:"found"`
	Todo  string `json:"todo,omitempty"` // what to do, or empty
}

// String returns a finding as a line.
func (f Finding) String() string {
	line := fmt.Sprintf("%-5s %-9s %s", f.State, f.ID, f.Found)
	if f.Todo != "" {
		line += " — " + f.Todo
	}
	return line
}

// A Report has a finding for each check, in the order in which they depend on each other.
type Report []Finding

// Add adds a finding.
func (r *Report) Add(id string, state State, todo, format string, args ...any) {
	*r = append(*r, Finding{ID: id, State: state, Found: fmt.Sprintf(format, args...), Todo: todo})
}

// AddSettings adds that a file of settings has been read. If there is none, the defaults apply.
func (r *Report) AddSettings(file string) {
	if _, err := os.Stat(file); err != nil {
		r.Add("settings", OK, "", "there is no %s: the defaults apply", file)
		return
	}
	r.Add("settings", OK, "", "%s has no errors", file)
}

// Failed reports whether any check failed.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r, func(f Finding) bool { return f.State == Fail })
}

// Print prints a line for each finding, or all as a JSON array.
func (r Report) Print(w io.Writer, asJSON bool) error {
	if asJSON {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	for _, f := range r {
		if _, err := fmt.Fprintln(w, f); err != nil {
			return err
		}
	}
	return nil
}

// TryWrite writes a file into a directory, as large as most of qt's and qtd's are, and removes it.
func TryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Close()) // some file systems tell at the end
}
