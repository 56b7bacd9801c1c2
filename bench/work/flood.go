//go:build linux

package work

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"
)

// A flood is lines with a number and text that zstd cannot compress much.
const (
	floodText = 48 // bytes before base64
	floodLine = 8 + 1 + floodText/3*4
)

var floodLinePattern = regexp.MustCompile(fmt.Sprintf(`(?m)^(\d{8}) [A-Za-z0-9+/]{%d}\r?$`, floodLine-9))

// kernelBytes is the most that a kernel's terminal holds, and drops when it is interrupted
// (termios(3), ISIG without NOFLSH): 64 KiB between its two ends, what a reader gets at
// once, and a program's last write.
const kernelBytes = 80 << 10

// newFlood returns a function that returns the next line.
func newFlood() func() string {
	random := rand.NewChaCha8([32]byte{})
	raw := make([]byte, floodText)
	n := 0
	return func() string {
		n++
		random.Read(raw)
		return fmt.Sprintf("%08d %s\n", n, base64.StdEncoding.EncodeToString(raw))
	}
}

// checkFlood returns what is wrong with the lines of a flood that was interrupted. All from
// the first on must be there, except those that the server's kernel dropped at the interrupt.
func checkFlood(text string) error {
	last, at, gaps := 0, 0, 0
	for _, found := range floodLinePattern.FindAllStringSubmatchIndex(text, -1) {
		n, _ := strconv.Atoi(text[found[2]:found[3]])
		if n != last+1 {
			gaps++
			missing := (n - last - 1) * (floodLine + 1)
			if end := len(text) - at; gaps > 1 || end > kernelBytes || missing < 0 || missing > kernelBytes {
				return fmt.Errorf("line %d comes after %d, %d bytes before the end", n, last, end)
			}
		}
		last, at = n, found[1]
	}
	if last == 0 {
		return fmt.Errorf("no lines in %d bytes", len(text))
	}
	return nil
}

// flood prints a flood. Rate is in bytes a second; 0 is as fast as possible.
func flood(out io.Writer, rate int) error {
	const block = 4096 // as stdio writes
	w := bufio.NewWriterSize(out, block)
	line := newFlood()
	start := time.Now()
	for n := 1; ; n++ {
		if _, err := w.WriteString(line()); err != nil {
			return err
		}
		const interval = 64 // lines
		if rate > 0 && n%interval == 0 {
			due := time.Duration(float64(n*(floodLine+1)) / float64(rate) * float64(time.Second))
			time.Sleep(time.Until(start.Add(due)))
		}
	}
}
