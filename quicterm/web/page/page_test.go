package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

// A person types in the page, whose address keeps no secret.
func playPage(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	if address := eval[string](v, `location.href`); strings.ContainsAny(address, "#?") {
		t.Errorf("the address is %s", address)
	}
	v.enter("printf '\\033[1;31mred\\033[0m \\033[48;5;19mblue\\033[0m 漢字 e\\314\\201 %d\\n' $((6*7))\r")
	v.await(`(?m)^red blue .* 42`)
	v.wantSame(v.session(), "0")
	v.do(v.page.Reload(v.ctx))
	v.awaitStatus("qt web")
}

// A link is good once: a second page gets nothing by it.
func playLink(t *testing.T, d *desk) {
	v, r := d.prompt(t)
	link := eval[string](v, `location.href`) + "#s=" + strings.Repeat("A", 43)
	other := d.visit(t, link)
	other.awaitStatus("used before")
	if _, err := d.browser.Open(v.ctx, r.file); err == nil {
		t.Error("the file with the link is there after its use")
	}
}

// Programs draw the whole screen.
func playPrograms(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	v.enter("seq 300 >f; vi f\r")
	v.await(`(?s)^1\n2\n.*f" 300`)
	v.enter("100Gohello" + bidi.Escape + ":set nu\r")
	v.await(`101 hello`)
	v.wantSame(v.session(), "0")
	v.enter(":q!\r")
	v.await(`(?m)^\$$`)
	v.enter("less f\r")
	v.await(`(?s)^1\n2\n`)
	v.enter("G")
	v.await(`\n300\n`)
	v.wantSame(v.session(), "0")
	v.enter("q")
	v.await(`(?m)^\$$`)
	v.wantSame(v.session(), "100")
}

// What is typed while the daemon is away comes when it is there again.
func playRestart(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	v.enter("echo be")
	d.daemon.Process.Kill()
	d.daemon.Wait()
	v.enter("fore$((40+2))")
	d.start(t)
	v.enter("after\r")
	v.await(`(?m)^before42after`)
	v.awaitStatus(`^$`)
	v.wantSame(v.session(), "0")
}

// Output of a time without a network is there afterwards. The relay that does not run is one.
func playOffline(t *testing.T, d *desk) {
	v, r := d.prompt(t)
	v.enter("for i in $(seq 100); do echo line $i; sleep 0.02; done; echo en''d\r")
	v.await("line 20")
	r.cmd.Process.Signal(syscall.SIGSTOP)
	v.enter("\r") // to which there is no answer, soon
	v.awaitStatus("since")
	time.Sleep(time.Second) // it is away, and nothing is to happen
	r.cmd.Process.Signal(syscall.SIGCONT)
	v.await(`(?m)^end`)
	v.awaitStatus(`^$`)
	v.wantSame(v.session(), "500")
}

// Two sessions are in two tabs.
func playTabs(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	v.enter("echo fir''st\r")
	v.await(`(?m)^first`)
	v.do(v.page.Eval(v.ctx, `document.getElementById("sessions").click()`, nil))
	v.until(func() bool {
		return eval[bool](v, `document.querySelectorAll("#list li").length === 1`)
	}, func() string { return "the list does not show the session" })
	v.do(v.page.Eval(v.ctx, `document.querySelector("#list button[value=new]").click()`, nil))
	v.await(`^[^$#%>]*[$#%>]$`)
	v.enter("echo seco''nd\r")
	v.await(`(?m)^second`)
	v.do(v.page.Eval(v.ctx, `document.querySelector("#tabs button").click()`, nil))
	v.await(`(?m)^first`)
	v.enter("echo thi''rd\r")
	v.await(`(?ms)^first.*^third`)
}

// 10,000 lines of scrollback are in the page; the last ones are also those of the holder.
func playHistory(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	v.enter("seq 12000 | sed 's/$/ of a long history/'; echo en''d\r")
	v.await(`(?m)^end`)
	v.wantSame(v.session(), "900")
	var want strings.Builder
	for i := 12001 - 10000; i <= 12000; i++ {
		fmt.Fprintf(&want, "%d of a long history\n", i)
	}
	got := eval[string](v, `(() => {
		const { active } = tested.shown().buffer;
		return Array.from({ length: active.length }, (_, y) => active.getLine(y).translateToString(true)).join("\n");
	})()`)
	if !strings.Contains(got, want.String()) {
		t.Errorf("the history begins with %.100q", got)
	}
}

// More output than a terminal can show at once comes whole.
func playFlood(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	began := time.Now()
	v.enter("seq 250000; echo en''d\r") // 1.6 MB
	v.await(`(?m)^end`)
	t.Logf("1.6 MB: %v", time.Since(began).Round(time.Millisecond))
	v.wantSame(v.session(), "1000")
}

// The terminal has the size of its place, also after a phone is turned.
func playTurn(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	for _, size := range [][2]int{{390, 844}, {844, 390}, {1000, 700}} {
		v.do(v.page.Resize(v.ctx, size[0], size[1]))
		v.until(func() bool {
			return eval[bool](v, `(() => {
				const is = tested.shown().element.getBoundingClientRect(), cell = tested.shown()._core._renderService.dimensions.css.cell;
				const there = tested.shown().element.parentElement.getBoundingClientRect();
				return Math.abs(there.width - tested.shown().cols * cell.width) < 4 * cell.width &&
					Math.abs(there.height - tested.shown().rows * cell.height) < 2 * cell.height && is.right <= innerWidth;
			})()`)
		}, func() string { return "the terminal does not fill its place" })
		v.wantSame(v.session(), "0")
	}
}
