package main

import (
	"fmt"
	"regexp"
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
	v.do(v.page.Resize(v.ctx, 700, 400))
	v.do(v.page.Press(v.ctx, bidi.Control, "f"))
	v.wantSame(v.session(), "0")
	v.do(v.page.Resize(v.ctx, 1000, 700))
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
	v.enter("HTOPRC=htoprc htop -d 100\r") // it draws every 10 seconds
	v.await(`PID +USER`)
	v.wantSame(v.session(), "0")
	v.enter("h")
	v.await(`Press any key`)
	v.wantSame(v.session(), "0")
	v.enter("qq")
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

// leave leaves a page without a network while other scenarios are played in its browser, and returns what comes back to it: the
// output of that time is there then. The relay that does not run is the network. At least 30 seconds pass.
func leave(t *testing.T, d *desk) (back func(*testing.T, *desk)) {
	alone := &desk{machine: newMachine(t), kind: d.kind, browser: d.browser}
	left, r := alone.prompt(t)
	left.enter("for i in $(seq 300); do echo line $i; sleep 0.1; done; echo en''d\r")
	left.await("line 2")
	r.cmd.Process.Signal(syscall.SIGSTOP)
	began := time.Now()
	left.enter("\r") // to which there is no answer, soon
	return func(t *testing.T, _ *desk) {
		v := &view{t, alone, left.page, left.ctx}
		v.awaitStatus("since")
		time.Sleep(time.Until(began.Add(30 * time.Second)))
		if strings.Contains(v.text(), "line 300") {
			t.Error("the page has a network")
		}
		r.cmd.Process.Signal(syscall.SIGCONT)
		v.await(`(?m)^end`)
		v.awaitStatus(`^$`)
		v.wantSame(v.session(), "500")
	}
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

// More output than a terminal can show at once comes whole, and can be interrupted.
func playFlood(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	took := func(what string, play func()) {
		began := time.Now()
		play()
		t.Logf("%s: %v", what, time.Since(began).Round(time.Millisecond))
	}
	took("10 MB", func() { // by -measure, 50
		v.enter("yes $(printf %099d 7) | head -c 10000000; echo en''d\r")
		v.await(`(?m)^end`)
	})
	v.wantSame(v.session(), "1000")
	v.enter("yes flood\r")
	v.await(`(?m)^flood\s*\nflood`)
	took("Ctrl-C", func() {
		v.do(v.page.Press(v.ctx, bidi.Control, "c"))
		v.await(`\^C.*\n\$$`) // the kernel drops what it has not printed: ^C may overwrite the start of a line
	})
	v.wantSame(v.session(), "1000")
}

// What keys of other layouts have reaches the program once.
func playKeyboards(t *testing.T, d *desk) {
	v, _ := d.prompt(t)
	v.enter("printf now; cat\r") // whose terminal knows no locale
	v.await(`(?m)^now`)
	const letters = "äöüÄÖÜß€µ@[]{}|~é²èçàùŒœñ¥日本かな"
	v.enter(letters + "\r")
	v.await(`(?m)^now` + regexp.QuoteMeta(letters) + `\s*\n` + regexp.QuoteMeta(letters) + `\s*$`)
	if d.kind != bidi.Chromium { // other browsers have no command for the rest
		return
	}
	for _, text := range []string{"n", "に", "にほ", "日本"} {
		v.composes(text)
	}
	v.inserts("日本")
	for _, dead := range [][2]string{{"^", "ê"}, {"´", "é"}, {"¨", "ü"}, {"^", "^"}} {
		v.composes(dead[0])
		v.inserts(dead[1])
	}
	v.enter("\r")
	v.await(`(?m)^日本êéü\^\s*\n日本êéü\^\s*$`)
	v.do(v.page.Press(v.ctx, bidi.Control, "c"))
	v.await(`(?m)^\$$`)
	v.enter("stty raw -echo; printf ready; cat -v\r")
	v.await(`ready`)
	const control, shift = 2, 8
	for _, k := range []struct {
		code, key       string
		virtual, holds  int
		text            string
		layout, reaches string
	}{
		{"KeyQ", "@", 'Q', 0, "@", "German, AltGr", "@"},
		{"KeyY", "z", 'Z', control, "", "German", "^Z"},
		{"KeyQ", "a", 'A', control, "", "French", "^A"},
		{"Digit1", "&", '1', 0, "&", "French", "&"},
		{"Digit1", "1", '1', shift, "1", "French", "1"},
		{"Digit5", "[", '5', 0, "[", "French, AltGr", "["},
		{"IntlRo", "\\", 226, 0, "\\", "Japanese", "\\"},
		{"IntlRo", "_", 226, shift, "_", "Japanese", "_"},
	} {
		event := map[string]any{"type": "keyDown", "code": k.code, "key": k.key, "windowsVirtualKeyCode": k.virtual, "modifiers": k.holds}
		if k.text != "" {
			event["text"] = k.text
		}
		v.command("Input.dispatchKeyEvent", event)
		delete(event, "text")
		event["type"] = "keyUp"
		v.command("Input.dispatchKeyEvent", event)
		v.enter(";")
		before := v.text()
		v.until(func() bool { before = v.text(); return strings.HasSuffix(before, k.reaches+";") },
			func() string { return k.layout + ": no " + k.reaches + " in " + before })
	}
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
