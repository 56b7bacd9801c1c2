package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

// TestPhone plays what a person does on a phone, in Chromium: other browsers have no command for an input method, and for two
// fingers.
func TestPhone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, bidi.Chromium)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.browser.Prepare(ctx, `() => {
		const real = matchMedia;
		window.matchMedia = (query) => real.call(window, query === "(pointer: coarse)" ? "all" : query);
	}`); err != nil {
		t.Fatal(err)
	}
	for name, play := range map[string]func(*testing.T, *desk){
		"keys": playKeys, "fingers": playFingers, "beside a desktop": playBeside,
	} {
		t.Run(name, func(t *testing.T) { play(t, d) })
	}
}

// A phone is a page on one, with a prompt.
type phone struct{ *view }

// A point is a place in the page, in its pixels.
type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

func (d *desk) phone(t *testing.T) phone {
	t.Helper()
	v, _ := d.prompt(t)
	p := phone{v}
	p.turn(390, 844)
	p.is(`tested.shown().cols < 50`)
	return p
}

// command has Chromium do a command of its own protocol.
func (p phone) command(method string, params any) {
	p.t.Helper()
	p.do(p.page.Chromium(p.ctx, method, params))
}

// turn gives the page the screen of a phone.
func (p phone) turn(width, height int) {
	p.t.Helper()
	p.command("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": true})
	p.command("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true})
}

// touch has fingers at some points, or no finger any more.
func (p phone) touch(kind string, points ...point) {
	p.t.Helper()
	p.command("Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": append([]point{}, points...)})
}

// press touches a button that has a name, for a time.
func (p phone) press(name string, held time.Duration) {
	p.t.Helper()
	at := eval[point](p.view, `(() => {
		const named = (b) => (b.ariaLabel ?? b.textContent) === "`+name+`" && b.offsetParent;
		const box = [...document.querySelectorAll("button")].find(named).getBoundingClientRect();
		return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
	})()`)
	p.touch("touchStart", at)
	time.Sleep(held)
	p.touch("touchEnd")
}

// drag moves a finger.
func (p phone) drag(from, to point) {
	p.t.Helper()
	p.touch("touchStart", from)
	for i := 1.0; i <= 10; i++ {
		p.touch("touchMove", point{from.X + (to.X-from.X)*i/10, from.Y + (to.Y-from.Y)*i/10})
	}
	p.touch("touchEnd")
}

func (p phone) composes(text string) {
	p.t.Helper()
	n := len([]rune(text))
	p.command("Input.imeSetComposition", map[string]any{"text": text, "selectionStart": n, "selectionEnd": n})
}

func (p phone) inserts(text string) {
	p.t.Helper()
	p.command("Input.insertText", map[string]any{"text": text})
}

// is waits until an expression of the page is true.
func (p phone) is(expression string) {
	p.t.Helper()
	p.until(func() bool { return eval[bool](p.view, expression) },
		func() string { return "never " + expression + "; the terminal has\n" + p.text() })
}

// wrapped returns a pattern for a text that the terminal may have wrapped.
func wrapped(text string) string {
	var pattern strings.Builder
	for _, r := range text {
		pattern.WriteString(regexp.QuoteMeta(string(r)) + `\s*`)
	}
	return pattern.String()
}

// What a phone's keyboard and the bar of keys type reaches the program once.
func playKeys(t *testing.T, d *desk) {
	b := d.phone(t)
	b.is(`document.querySelectorAll(".keys button").length === 16`)
	b.is(`[...document.querySelectorAll(".keys button")].every(b => b.ariaLabel && b.clientHeight >= 44 && b.clientWidth >= 40)`)
	b.inserts("stty size\r")
	b.await(`(?m)^\d\d 4\d\s*$`)

	b.inserts("printf now; cat\r") // whose terminal knows no locale
	b.await(`(?m)^now`)
	for _, text := range []string{"h", "he", "hel", "hello"} { // as Gboard composes a word
		b.composes(text)
	}
	b.inserts("hello ")
	for _, text := range []string{"ｎ", "に", "にほ", "日本"} { // as an input method of Japanese does
		b.composes(text)
	}
	b.inserts("日本")
	b.composes("'") // a dead key
	b.inserts("é\r")
	b.await(`(?m)^nowhello 日本é\s*\n^hello 日本é\s*$`)

	b.press("Control-C", 0)
	b.await(`\^C\s*\n\S*[#$]`)
	b.inserts("stty raw -echo; printf ready; cat -v\r")
	b.await(`(?m)^ready`)
	keys := func(want string, type_ func()) {
		t.Helper()
		type_()
		b.inserts(";")
		b.await(wrapped(want + ";"))
	}
	keys("^[", func() { b.press("Escape", 0) })
	keys("^C", func() { b.press("Control-C", 0) })
	keys("^[[A^[[D", func() { b.press("Up", 0); b.press("Left", 0) })
	keys("^A~", func() { b.press("Control", 0); b.inserts("a"); b.press("Tilde", 0) })
	keys("^[x", func() { b.press("Alt", 0); b.inserts("x") })
	keys("^[[1;5C", func() { b.press("Control", 0); b.press("Right", 0) })
	keys("^B^Bb", func() {
		b.press("Control", 0)
		b.press("Control", 0)
		b.inserts("b")
		b.inserts("b")
		b.press("Control", 0)
		b.inserts("b")
	})
	b.press("Pipe", time.Second)
	b.await(wrapped(";|||"))
	b.is(`document.activeElement.classList.contains("xterm-helper-textarea")`)
	// A key without a name whose text the field has: once. The keyboard corrects a word: the rest is typed again.
	keys("5", func() {
		eval[string](b.view, `(() => {
			const field = document.activeElement;
			field.dispatchEvent(new KeyboardEvent("keydown", { keyCode: 229, bubbles: true }));
			field.value += "5";
			field.dispatchEvent(new InputEvent("input", { data: "5", inputType: "insertText", bubbles: true, composed: true }));
			return "";
		})()`)
	})
	keys("teh^?^?he", func() {
		b.composes("teh")
		b.composes("the")
		b.inserts("the")
	})
	b.press("Type a line", 0)
	b.is(`document.activeElement.ariaLabel === "A line to type"`)
	b.inserts("a whole line")
	b.enter("\r")
	b.await(wrapped("a whole line^M"))
}

// Fingers scroll, zoom and select, and a rotation is one resize.
func playFingers(t *testing.T, d *desk) {
	b := d.phone(t)
	b.inserts("seq 500; echo a-word\r")
	b.await(`(?m)^500`)
	b.drag(point{200, 200}, point{200, 600})
	b.is(`tested.shown().buffer.active.viewportY < tested.shown().buffer.active.baseY - 15`)
	b.drag(point{200, 600}, point{200, 100})
	b.drag(point{200, 600}, point{200, 100})
	b.is(`tested.shown().buffer.active.viewportY === tested.shown().buffer.active.baseY`)
	at := eval[point](b.view, `(() => {
		const t = tested.shown(), box = t.element.querySelector(".xterm-screen").getBoundingClientRect();
		const row = tested.text().split("\n").findIndex((line) => line.startsWith("a-word"));
		return { x: box.x + 20, y: box.y + (row + 0.5) * box.height / t.rows };
	})()`)
	b.touch("touchStart", at)
	b.is(`document.querySelector(".copy").hidden === false`)
	b.touch("touchEnd")
	eval[string](b.view, `(navigator.clipboard.writeText = (text) => { window.copied = text; }, "")`)
	b.press("Copy", 0)
	b.is(`window.copied === "a-word"`)

	b.inserts("(trap 'set -- $(stty size); echo size-$1-$2' WINCH; echo waits; while :; do sleep 0.1; done)\r")
	b.await(`(?m)^waits`)
	b.turn(844, 390)
	b.await(`\bsize-\d\d-\d+`)
	if n := len(regexp.MustCompile(`\bsize-\d`).FindAllString(b.text(), -1)); n != 1 {
		t.Errorf("a rotation makes %d resizes:\n%s", n, b.text())
	}
	b.turn(390, 844)
	b.await(`\bsize-\d\d-4\d`)
	b.touch("touchStart", point{100, 300}, point{200, 300})
	for apart := 100.0; apart <= 150; apart += 10 {
		b.touch("touchMove", point{100, 300}, point{100 + apart, 300})
	}
	b.touch("touchEnd")
	b.await(`\bsize-\d\d-[123]\d`)

	b.press("Control-C", 0)
	b.await(`\^C\s*\n\S*[#$]`)
	b.inserts("printf '\\033[?1049hfull'; stty raw -echo; cat -v\r")
	b.await(`full`)
	b.drag(point{200, 200}, point{200, 400})
	b.await(`\^\[\[A\^\[\[A`)
}

// attachDesktop attaches a terminal of 200 columns to a session.
func attachDesktop(b phone, name string) {
	b.t.Helper()
	cmd := exec.Command("script", "-qfec", "stty cols 200 rows 50; exec "+b.desk.dir+"/qt connect -s "+name+" .", os.DevNull)
	cmd.Env = append(b.desk.env, "TERM=xterm-256color")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// A phone beside a desktop shows the session at its size, takes the size when asked to, and gives it back.
func playBeside(t *testing.T, d *desk) {
	b := d.phone(t)
	attachDesktop(b, "wide")
	b.press("Sessions", 0)
	b.is(`document.querySelector("#list").textContent.includes("wide")`)
	eval[string](b.view, `([...document.querySelectorAll("#list li button")].find(b => b.textContent.startsWith("wide")).click(), "")`)
	size := func(want string) {
		t.Helper()
		b.inserts("clear; stty size\r")
		b.await(want)
	}
	size(`(?m)^50 200\s*$`)
	b.inserts("printf 'wide-%.0s' $(seq 39); echo end\r")
	b.await(`(wide-){39}end`)
	b.is(`(() => { const s = document.querySelector("section:not([hidden])"); return s.scrollWidth > 3 * s.clientWidth; })()`)
	b.press("Read as text", 0)
	b.is(`(() => { const p = document.querySelector(".read pre"); return p.textContent.includes("wide-end") && p.scrollWidth <= p.clientWidth; })()`)
	eval[string](b.view, `(document.querySelector(".read button").click(), "")`)
	b.is(`!document.querySelector(".read")`)

	b.press("Give the session the size of this screen", 0)
	b.is(`document.querySelector("[aria-label^=Give]").ariaPressed === "true"`)
	size(`(?m)^\d\d 4\d\s*$`)
	b.press("Give the session the size of this screen", 0)
	b.is(`document.querySelector("[aria-label^=Give]").ariaPressed === "false"`)
	b.awaitSize(`(?m)^50 200\s*$`)

	// The page is not seen any more.
	b.press("Give the session the size of this screen", 0)
	b.awaitSize(`(?m)^\d\d 4\d\s*$`)
	eval[string](b.view, `(Object.defineProperty(document, "hidden", { get: () => true, configurable: true }),
		document.dispatchEvent(new Event("visibilitychange")), "")`)
	b.awaitSize(`(?m)^50 200\s*$`)
}

// awaitSize has the shell say the size until it is as wanted.
func (p phone) awaitSize(pattern string) {
	p.t.Helper()
	p.until(func() bool {
		p.inserts("clear; stty size\r")
		time.Sleep(300 * time.Millisecond)
		return regexp.MustCompile(pattern).MatchString(p.text())
	}, func() string { return "no size " + pattern + " in:\n" + p.text() })
}
