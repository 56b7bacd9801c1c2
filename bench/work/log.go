//go:build linux

package work

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/quicterm/quicterm/bench/measure"
)

// logFile writes a file of text as compilers print it, always the same, and returns its name
// and how many lines it has. zstd compresses it to about a seventh. It contains no mark, and
// ends with the measurement.
func logFile(t *measure.T, size int) (name string, lines int64) {
	file, err := os.CreateTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file.Name()) })
	counter := new(lineCounter)
	w := bufio.NewWriterSize(io.MultiWriter(file, counter), 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(words []string) string { return words[random.IntN(len(words))] }
	for written := 0; written < size; {
		n := 0
		source := fmt.Sprintf("%s/%s_%s", pick(logFolders), pick(logWords), pick(logWords))
		switch random.IntN(5) {
		case 0:
			n, _ = fmt.Fprintf(w, "mkdir -p /tmp/go-build%d/b%03d/\ncd /home/build/src/%s\n"+
				"/usr/lib/go/pkg/tool/linux_amd64/compile -o ./_pkg_.a -trimpath \"/tmp/go-build%d/b%03d=>\" -p %s "+
				"-complete -buildid %08x%08x/%08x -goversion go1.26 -c=4 -nolocalimports -importcfg /tmp/importcfg -pack ./%s.go\n",
				1234567890, random.IntN(500), source, 1234567890, random.IntN(500), source, random.Uint32(), random.Uint32(),
				random.Uint32(), pick(logWords))
		case 1, 2:
			n, _ = fmt.Fprintf(w, "gcc -Wall -Wextra -O2 -g -fPIC -Iinclude -I/usr/include/%s "+
				"-DHAVE_CONFIG_H -c %s.c -o build/%s.o\n", pick(logWords), source, source)
		default:
			line, word := random.IntN(3000)+1, pick(logWords)
			n, _ = fmt.Fprintf(w, "%s.c: In function '%s_%s':\n%s.c:%d:%d: warning: %s '%s_%s' [-W%s]\n"+
				"%5d |     %s = %s_%s(%s, %d);\n      |     ^~~~~~\n",
				source, pick(logWords), pick(logWords), source, line, random.IntN(60)+1, pick(logWarnings), word, pick(logWords),
				pick(logWords), line, word, pick(logWords), pick(logWords), pick(logWords), random.IntN(4096))
		}
		written += n
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name(), counter.Load()
}

// randomFile writes a file of random bytes and returns its name. It ends with the measurement.
func randomFile(t *measure.T, size int) (name string) {
	file, err := os.CreateTemp("", "qt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file.Name()) })
	defer file.Close()
	if _, err := io.CopyN(file, rand.NewChaCha8([32]byte{}), int64(size)); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

var (
	logFolders = []string{"src/core", "src/net/quic", "src/net/udp", "lib/codec", "lib/codec/frames", "drivers/tty",
		"drivers/net/tun", "tools/bench", "third_party/zstd/lib", "kernel/sched"}
	logWords = []string{"buffer", "frame", "session", "window", "stream", "packet", "ring", "link", "timer", "queue",
		"path", "state", "socket", "handle", "parse", "encode", "decode", "flush", "reset", "index", "length", "offset",
		"table", "entry", "config", "option", "error", "result", "context", "memory", "thread", "signal", "mutex", "object",
		"symbol", "vector"}
	logWarnings = []string{"unused variable", "unused parameter",
		"comparison of integer expressions of different signedness in", "implicit declaration of function",
		"this statement may fall through before", "initialization discards qualifier from",
		"passing argument 2 makes pointer from integer without a cast in"}
)
