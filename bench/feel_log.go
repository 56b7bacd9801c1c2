//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// compilerLog has a session show a long log over a slow link, with compression
// and without.
func (f *feeling) compilerLog(m *measurement) (string, bool) {
	const (
		rate  = 2_000_000 // bits per second
		size  = 20_000_000
		limit = 30 * time.Second // less is compared where that takes longer
		ratio = 4
	)
	settings := []string{"auto", "off"}
	speeds := make([]float64, len(settings))
	m.sideBySide(len(settings), func(m *measurement, i int) {
		h := rig.NewHost(m, m.bin)
		h.Client["compression"] = fmt.Sprintf("%q", settings[i])
		h.Start()
		writeLog(m, h.Path("log"), size)
		p := h.Proxy(netem.Config{Delay: slowRTT / 2, Rate: rate, Queue: bloated})
		s := newShell(m, h.Via(p.Addr(), "connect", []string{"-t"}, shellCommand), io.Discard)
		time.Sleep(settle)
		speeds[i] = s.cat(h.Path("log"), limit)
		if f.verbose {
			m.Logf("compression %s: %.2f Mbit/s", settings[i], 8*speeds[i]/1e6)
		}
	})
	return fmt.Sprintf("%.2f Mbit/s of log, without %.2f: %.1f x", 8*speeds[0]/1e6, 8*speeds[1]/1e6, speeds[0]/speeds[1]),
		speeds[0] >= ratio*speeds[1]
}

// cat has a file shown, and returns how many bytes per second are, at most for a time.
func (s *shell) cat(file string, limit time.Duration) float64 {
	s.arm()
	before, start := s.shown(), time.Now()
	s.send("cat " + file + "\r")
	end := start.Add(limit)
	select {
	case end = <-s.found:
	case <-s.x.Closed():
		s.m.Fatalf("the client ended: %q", s.start())
	case <-time.After(limit):
	}
	return float64(s.shown()-before) / end.Sub(start).Seconds()
}

// writeLog writes a file of text as compilers print it, always the same, of which
// zstd makes about a seventh. There is no promptMark in it.
func writeLog(m *measurement, name string, size int) {
	file, err := os.Create(name)
	if err != nil {
		m.Fatal(err)
	}
	w := bufio.NewWriterSize(file, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(words []string) string { return words[random.IntN(len(words))] }
	for written := 0; written < size; {
		n := 0
		source := fmt.Sprintf("%s/%s_%s", pick(logFolders), pick(logWords), pick(logWords))
		switch random.IntN(5) {
		case 0:
			n, _ = fmt.Fprintf(w, "mkdir -p /tmp/go-build%d/b%03d/\ncd /home/build/src/%s\n/usr/lib/go/pkg/tool/linux_amd64/compile -o ./_pkg_.a -trimpath \"/tmp/go-build%d/b%03d=>\" -p %s -complete -buildid %08x%08x/%08x -goversion go1.26 -c=4 -nolocalimports -importcfg /tmp/importcfg -pack ./%s.go\n",
				1234567890, random.IntN(500), source, 1234567890, random.IntN(500), source, random.Uint32(), random.Uint32(), random.Uint32(), pick(logWords))
		case 1, 2:
			n, _ = fmt.Fprintf(w, "gcc -Wall -Wextra -O2 -g -fPIC -Iinclude -I/usr/include/%s -DHAVE_CONFIG_H -c %s.c -o build/%s.o\n", pick(logWords), source, source)
		default:
			line, word := random.IntN(3000)+1, pick(logWords)
			n, _ = fmt.Fprintf(w, "%s.c: In function '%s_%s':\n%s.c:%d:%d: warning: %s '%s_%s' [-W%s]\n%5d |     %s = %s_%s(%s, %d);\n      |     ^~~~~~\n",
				source, pick(logWords), pick(logWords), source, line, random.IntN(60)+1, pick(logWarnings), word, pick(logWords),
				pick(logWords), line, word, pick(logWords), pick(logWords), pick(logWords), random.IntN(4096))
		}
		written += n
	}
	if err := w.Flush(); err != nil {
		m.Fatal(err)
	}
	if err := file.Close(); err != nil {
		m.Fatal(err)
	}
}

var (
	logFolders  = []string{"src/core", "src/net/quic", "src/net/udp", "lib/codec", "lib/codec/frames", "drivers/tty", "drivers/net/tun", "tools/bench", "third_party/zstd/lib", "kernel/sched"}
	logWords    = []string{"buffer", "frame", "session", "window", "stream", "packet", "ring", "link", "timer", "queue", "path", "state", "socket", "handle", "parse", "encode", "decode", "flush", "reset", "index", "length", "offset", "table", "entry", "config", "option", "error", "result", "context", "memory", "thread", "signal", "mutex", "object", "symbol", "vector"}
	logWarnings = []string{"unused variable", "unused parameter", "comparison of integer expressions of different signedness in", "implicit declaration of function", "this statement may fall through before", "initialization discards qualifier from", "passing argument 2 makes pointer from integer without a cast in"}
)
