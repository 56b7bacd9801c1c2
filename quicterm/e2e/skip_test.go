//go:build linux || darwin

package e2e

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// After an outage in which much was printed, the title shows how much is to come,
// and ~n leaves it out: what is missing is told exactly, and the prompt is there.
func TestSkip(t *testing.T) {
	h := newHost(t)
	h.Client["compression"] = `"off"`
	h.Start()
	link := netem.Config{Delay: 10 * time.Millisecond, Rate: 2e6, Queue: 1 << 20}
	p := h.Proxy(link)
	x := h.Shell(p.Addr())
	x.Run("cd "+h.Dir+"; mkfifo go done", "mkfifo")
	x.Send("read x < go; seq -f '%.0f of many lines to come' 1 400000; echo > done\r")
	x.Expect("done\r\n")
	p.Set(netem.Config{Down: true})
	// It waits for us for a while, and then for nobody.
	if out, err := h.QT("connect", fmt.Sprintf("cd %s; echo > go; cat done", h.Dir)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.Set(link)
	x.Expect(`\x1b\]2;qt: [0-9.]+ MB to come`)
	x.Send("\r~n")
	found := x.Expect(`\[qt: output was skipped: (\d+) frames with (\d+) bytes`)
	x.Run("echo here", "here")
	shown := x.Out.String()
	if strings.Contains(shown, "399000 of many") {
		t.Error("all of it was shown")
	}
	if n, err := strconv.Atoi(found[2]); err != nil || n < 1<<20 {
		t.Errorf("%s bytes were skipped, want most of 12 MB", found[2])
	}
	if titles := regexp.MustCompile(`MB to come`).FindAllString(shown, -1); len(titles) > 60 {
		t.Errorf("the title was set %d times", len(titles))
	}
}
