package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func sample(scenario string, values ...float64) Record {
	return Record{
		Time:     time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Commit:   "0123456789ab",
		Machine:  ThisMachine(),
		Scenario: scenario, Program: "quicterm", Metric: "truth", Unit: "ms",
		Loss: 0.05, RTT: 60,
		Values:  values,
		Events:  []Event{{At: 1.5, What: "another address"}},
		Bound:   "p50 at most 66 ms",
		Verdict: OK,
		Seed:    7,
	}
}

// written returns a file with records, and with more bytes behind them.
func written(t *testing.T, more string, records ...Record) string {
	t.Helper()
	var b bytes.Buffer
	for _, r := range records {
		if err := Append(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(path, append(b.Bytes(), more...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadsWhatWasAppended(t *testing.T) {
	full := sample("typing", 61.25, 62, 1e-3)
	full.At = []float64{0, 0.2, 0.4}
	never := sample("roam")
	never.Verdict, never.Why, never.Portable = Never, "one TCP connection", true
	want := []Record{full, never}
	got, err := Read(written(t, "", want...))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
}

func TestValuesAreShort(t *testing.T) {
	r := sample("typing", 100.0/3)
	got, err := Read(written(t, "", r))
	if err != nil || got[0].Values[0] != 33.3333 {
		t.Errorf("read %v, %v", got, err)
	}
	if r.Values[0] != 100.0/3 {
		t.Errorf("the record that was appended has %v now", r.Values)
	}
}

func TestAppendRefuses(t *testing.T) {
	for what, change := range map[string]func(*Record){
		"no scenario":     func(r *Record) { r.Scenario = "" },
		"no metric":       func(r *Record) { r.Metric = "" },
		"no program":      func(r *Record) { r.Program = "" },
		"too many values": func(r *Record) { r.Values = make([]float64, maxValues+1) },
		"a time too few":  func(r *Record) { r.Values, r.At = []float64{1, 2}, []float64{1} },
		"NaN":             func(r *Record) { r.Values = []float64{math.NaN()} },
		"verdict":         func(r *Record) { r.Verdict = "good" },
	} {
		r := sample("typing", 1)
		change(&r)
		var b bytes.Buffer
		if err := Append(&b, r); err == nil || b.Len() > 0 {
			t.Errorf("%s: error %v, wrote %q", what, err, &b)
		}
	}
}

func TestLongestRecordIsRead(t *testing.T) {
	r := sample("typing", make([]float64, maxValues)...)
	for i := range r.Values {
		r.Values[i] = -1.23456e-300
	}
	r.At = r.Values
	if got, err := Read(written(t, "", r)); err != nil || len(got[0].At) != maxValues {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// A writer that is ended, or a full disk, leaves part of a line.
func TestFileCutAtEachByte(t *testing.T) {
	whole, err := os.ReadFile(written(t, "", sample("first", 1), sample("second", 2)))
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	path := filepath.Join(t.TempDir(), "cut.jsonl")
	for n := range len(whole) {
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		records, err := Read(path)
		want := min(n/first, 1)
		line := fmt.Sprintf("%s:%d: ", path, want+1)
		if n == 0 || n == first {
			if err != nil || len(records) != want {
				t.Fatalf("%d bytes: %d records, %v", n, len(records), err)
			}
			continue
		}
		if len(records) != want || !errors.Is(err, ErrHalfLine) || !strings.HasPrefix(err.Error(), line) {
			t.Fatalf("%d bytes: %d records, %v; want %d, %s", n, len(records), err, want, line)
		}
		// Whoever goes on with the file is not spoiled by it.
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Append(f, sample("next", 3)); err != nil {
			t.Fatal(err)
		}
		f.Close()
		records, err = Read(path)
		if err != nil || len(records) != want+1 || records[want].Scenario != "next" {
			t.Fatalf("%d bytes: then %d records, %v", n, len(records), err)
		}
	}
}

func TestBadLinesAreNamed(t *testing.T) {
	good := sample("typing", 1)
	for _, bad := range []struct{ line, want string }{
		{"what", "invalid character 'w'"},
		{"", "unexpected end"},
		{"{}", "has a scenario"},
		{`{"scenario":"a","program":"b","metric":"c","values":["x"]}`, "values"},
		{`{"scenario":"a","program":"b","metric":"c","values":[1,2],"at":[1]}`, "2 values with 1 times"},
		{strings.Repeat("x", maxLine+1), "more than 1048576 bytes"},
	} {
		path := written(t, bad.line+"\n", good, good)
		records, err := Read(path)
		if err == nil || records != nil || !strings.HasPrefix(err.Error(), path+":3: ") ||
			!strings.Contains(err.Error(), bad.want) {
			t.Errorf("%.20q: %d records, error %v, want %q", bad.line, len(records), err, bad.want)
		}
		if f, err := Open(path); err == nil {
			f.Close()
			t.Errorf("%.20q: opened", bad.line)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestQuantile(t *testing.T) {
	r := Record{Values: []float64{5, 1, 4, 2, 3, 10, 9, 8, 7, 6}}
	for q, want := range map[float64]float64{0: 1, 0.1: 1, 0.5: 5, 0.51: 6, 0.7: 7, 0.9: 9, 0.99: 10, 1: 10} {
		if got := r.Quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if r.Values[0] != 5 {
		t.Error("the values were sorted in place")
	}
	if got := (Record{}).Quantile(0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestMachineAndCommit(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || m.Go != runtime.Version() || runtime.GOOS == "linux" && m.Kernel == "" {
		t.Errorf("machine %+v", m)
	}
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", args...)
		c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.org")
		if out, err := c.CombinedOutput(); err != nil {
			t.Skipf("git %v: %v %s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	if got := Commit(); got != "" {
		t.Errorf("commit %q where there is no repository", got)
	}
	git("init", "-q")
	write("README.md", "one")
	write("code.go", "one")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	clean := Commit()
	if len(clean) != 12 {
		t.Errorf("commit %q", clean)
	}
	write("README.md", "with results")
	if got := Commit(); got != clean {
		t.Errorf("commit %q with another README, want %q", got, clean)
	}
	write("code.go", "two")
	if got := Commit(); got != clean+"+" {
		t.Errorf("commit %q with other code, want %q", got, clean+"+")
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Append(&b, sample("typing", 1, 2)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{}\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, whole, err := read(bytes.NewReader(data))
		if err == nil && whole != int64(len(data)) {
			t.Errorf("%d of %d bytes are read", whole, len(data))
		}
		for _, r := range records {
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("what was read cannot be written: %v", err)
			}
			r.Quantile(0.5)
		}
	})
}

func TestWhichIsBetter(t *testing.T) {
	for metric, more := range map[string]bool{"rate": true, "complete": true, "truth": false, "wire": false,
		"server memory": false} {
		if About(metric).MoreIsBetter != more {
			t.Errorf("more %s is better: %v", metric, !more)
		}
	}
	if !About("wire").Cost || About("truth").Cost {
		t.Error("the wire costs, and an echo does not")
	}
}
