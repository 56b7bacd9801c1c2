package screen

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
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
		for part := range slices.Chunk(output, minSkip-1) { // so that all is drawn
			s.Write(part)
		}
	}
}

// BenchmarkFlood writes as much text at once as an emulator is fed in a flood.
func BenchmarkFlood(b *testing.B) {
	for name, line := range map[string]string{
		"plain":   "-rw-r--r-- 1 root root 1234 Nov 22 15:00 some-file-name.go and more text\r\n",
		"colours": "\x1b[01;34mdirectory\x1b[0m  \x1b[01;31mfile\x1b[0m and more text\r\n",
		"CJK":     "größe 終了 宽字符 of more text\r\n",
	} {
		b.Run(name, func(b *testing.B) {
			s := New(80, 24, Limits{})
			flood := bytes.Repeat([]byte(line), 1<<20/len(line))
			b.SetBytes(int64(len(flood)))
			for b.Loop() {
				s.Write(flood)
			}
		})
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
