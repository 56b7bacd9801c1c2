package screen

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// Bounds that the benchmarks show: 150 MB/s of plain text, 80 MB/s of the output of full-screen
// programs, 48 KB of memory empty and 600 KB with 1000 lines of scrollback.

func BenchmarkPlainText(b *testing.B) {
	var text bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&text, "%6d  %s\r\n", i, strings.Repeat("the quick brown fox ", 4)[:10+i%60])
	}
	benchmarkWrite(b, text.Bytes())
}

func BenchmarkFullScreen(b *testing.B) {
	for _, name := range []string{"vim_syntax", "mc", "tmuxin", "nano", "less"} {
		b.Run(name, func(b *testing.B) { benchmarkWrite(b, read(b, "testdata/programs/"+name+".raw")) })
	}
}

func BenchmarkColors(b *testing.B) {
	for _, name := range []string{"ls", "gitdiff", "uni"} {
		b.Run(name, func(b *testing.B) { benchmarkWrite(b, read(b, "testdata/programs/"+name+".raw")) })
	}
}

func benchmarkWrite(b *testing.B, output []byte) {
	s := New(80, 24, Limits{})
	output = bytes.Repeat(output, 1+(64<<10)/len(output))
	b.SetBytes(int64(len(output)))
	b.ReportAllocs()
	for b.Loop() {
		s.Write(output)
	}
}

// BenchmarkMemory reports the memory of a Screen.
func BenchmarkMemory(b *testing.B) {
	ls, err := os.ReadFile("testdata/programs/ls.raw")
	if err != nil {
		b.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		lines int
	}{{"empty", 0}, {"1000-lines", 1000}} {
		b.Run(test.name, func(b *testing.B) {
			const n = 20
			for b.Loop() {
				before := heap()
				screens := make([]*Screen, n)
				for i := range screens {
					screens[i] = New(80, 24, Limits{})
					for screens[i].Lines() < test.lines {
						screens[i].Write(ls)
					}
				}
				b.ReportMetric(float64(heap()-before)/n/1024, "KiB/screen")
				runtime.KeepAlive(screens)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
