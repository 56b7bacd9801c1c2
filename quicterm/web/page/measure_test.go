package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

var (
	measure = flag.Bool("measure", false, "measure the page in each browser")
)

// TestMeasure prints what a visit, a key, output and a return from sleep cost in each browser.
func TestMeasure(t *testing.T) {
	if !*measure {
		t.Skip("by -measure only")
	}
	for _, kind := range []bidi.Kind{bidi.Chromium, bidi.Firefox} {
		t.Run(string(kind), func(t *testing.T) {
			d := newDesk(t, kind)
			t.Run("visits", func(t *testing.T) { measureVisits(t, d, 1) })
			if kind == bidi.Chromium {
				t.Run("visits, 4 times slower", func(t *testing.T) { measureVisits(t, d, 4) })
			}
			t.Run("keys", func(t *testing.T) { measureKeys(t, d) })
			t.Run("output", func(t *testing.T) { measureOutput(t, d) })
			t.Run("wake", func(t *testing.T) { measureWake(t, d) })
		})
	}
}

// marked is the time in the page, in milliseconds from the begin of its visit, of what prepare.js marks.
func (v *view) marked(name string) float64 {
	v.t.Helper()
	var at float64
	v.until(func() bool {
		at = eval[float64](v, "window.tested?.marks["+fmt.Sprintf("%q", name)+"] ?? 0")
		return at > 0
	}, func() string { return "nothing is " + name })
	return at
}

// measureVisits opens the page for the first time, and loads it again, which the browser has then.
func measureVisits(t *testing.T, d *desk, slower int) {
	v := d.visit(t, d.web(t).file) // of another address, so that no file is there
	if slower > 1 {
		v.do(v.page.Chromium(v.ctx, "Emulation.setCPUThrottlingRate", map[string]any{"rate": slower}))
		v.do(v.page.Navigate(v.ctx, d.web(t).file))
	}
	v.await(`[#$%>] ?$`)
	ready, output := v.marked("ready"), v.marked("output")
	t.Logf("first visit: the client runs after %.0f ms, the prompt is there after %.0f ms", ready, output)
	v.do(v.page.Reload(v.ctx))
	v.awaitStatus("qt web")
	t.Logf("with the files there: the client runs after %.0f ms, so that the prompt is there after about %.0f ms",
		v.marked("ready"), v.marked("ready")+output-ready)
}

// measureKeys types keys, and measures until xterm.js gets what the program echoes.
func measureKeys(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	v.do(v.page.Eval(v.ctx, "tested.echoes.length = 0", nil))
	var times []float64
	for i := range 60 {
		v.enter("x")
		v.until(func() bool {
			times = eval[[]float64](v, "tested.echoes")
			return len(times) > i
		}, func() string { return "no echo" })
	}
	slices.Sort(times)
	t.Logf("an echo: %.1f ms in the middle, %.1f ms at most of 9 in 10", times[len(times)/2], times[len(times)*9/10])
}

// measureOutput prints a file, and then has the same xterm.js parse it alone.
func measureOutput(t *testing.T, d *desk) {
	const size = 50_000_000
	var text []byte
	for i := 0; len(text) < size; i++ {
		text = fmt.Appendf(text, "\x1b[3%dm%06d\x1b[0m a line of output, as a build or a log has it, with some more words\r\n", i%8, i)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "output"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	v, _ := d.prompt(t)
	began := time.Now()
	v.enter("cat output; echo en''d\r")
	v.await(`(?m)^end`)
	whole := time.Since(began).Seconds()
	alone := eval[float64](v, `(async () => {
		const t = tested.shown(), line = (i) => "\x1b[3" + i % 8 + "m" + String(i).padStart(6, "0") +
			"\x1b[0m a line of output, as a build or a log has it, with some more words\r\n";
		let text = "";
		for (let i = 0; text.length < 1 << 16; i++) text += line(i);
		const bytes = new TextEncoder().encode(text), began = performance.now();
		for (let done = 0; done < `+fmt.Sprint(size)+`; done += bytes.length) await new Promise((next) => t.write(bytes, next));
		return (performance.now() - began) / 1000;
	})()`)
	t.Logf("output: %.1f MB/s, xterm.js alone %.1f MB/s: %.2f", size/whole/1e6, size/alone/1e6, alone/whole)
}

// measureWake measures from the moment at which the network is there again until the screen is right.
func measureWake(t *testing.T, d *desk) {
	best := math.Inf(1)
	for range 3 {
		t.Run("", func(t *testing.T) {
			v, r := d.prompt(t)
			v.enter("sleep 2; seq 5000; echo en''d\r")
			v.await("sleep 2")
			r.cmd.Process.Signal(syscall.SIGSTOP)
			v.awaitStatus("since")
			time.Sleep(2 * time.Second)
			r.cmd.Process.Signal(syscall.SIGCONT)
			took := eval[float64](v, `new Promise((done) => {
				const began = performance.now();
				dispatchEvent(new Event("pageshow"));
				const look = () => /^end/m.test(tested.text()) ? done(performance.now() - began) : setTimeout(look, 1);
				look();
			})`)
			best = min(best, took)
		})
	}
	t.Logf("after a wake, the screen is right after %.0f ms", best)
}
