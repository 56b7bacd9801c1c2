//go:build linux

package suite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/bench/result"
)

const microOutput = `goos: linux
goarch: amd64
pkg: github.com/quicterm/quicterm/buffer
cpu: Some CPU
BenchmarkRingAppend/append/64-2         	 2799922	        36.59 ns/op	1749.09 MB/s	      24 B/op	       0 allocs/op
BenchmarkRingAppend/bare/64-2           	 8514430	        14.84 ns/op	4311.54 MB/s
BenchmarkRingAppend/append/4096-2       	  190111	       548.0 ns/op	7000.00 MB/s	     354 B/op	       0 allocs/op
BenchmarkRingAppend/append/4096-2       	  190111	       548.0 ns/op	6000.00 MB/s	     354 B/op	       0 allocs/op
BenchmarkRingAppend/bare/4096-2         	  333422	       404.3 ns/op	9000.00 MB/s
BenchmarkRingAppend/bare/4096-2         	  333422	       404.3 ns/op	10000.00 MB/s
PASS
ok  	github.com/quicterm/quicterm/buffer	1.100s
pkg: github.com/quicterm/quicterm/quicterm/session
BenchmarkEcho-2     	   32181	      3536 ns/op	     589 B/op	      17 allocs/op
PASS
`

func TestParseMicro(t *testing.T) {
	records, err := parseMicro(strings.NewReader(microOutput))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprintf("%s: %s %.4g %s %s %s", r.Scenario, r.Metric, r.Values, r.Unit, r.Bound, r.Verdict))
	}
	want := []string{
		"buffer RingAppend/append/64: rate [1749] MB/s  ",
		"buffer RingAppend/append/4096: rate [7000 6000] MB/s  ",
		"buffer RingAppend/append/4096 of bare: rate [0.7] x p50 >= 0.6 ok",
		"quicterm/session Echo: time [3.536] us  ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, bad := range []string{"", "PASS\n", "BenchmarkEcho-2 x y\n"} {
		if records, err := parseMicro(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %v", bad, records)
		}
	}
}

// A slow ring misses its bound.
func TestRingShare(t *testing.T) {
	slow := strings.ReplaceAll(microOutput, "7000.00 MB/s", "5999.00 MB/s")
	slow = strings.ReplaceAll(slow, "6000.00 MB/s", "5000.00 MB/s")
	records, err := parseMicro(strings.NewReader(slow))
	if err != nil {
		t.Fatal(err)
	}
	if r := records[2]; r.Verdict != result.Missed {
		t.Errorf("%+v", r)
	}
}
