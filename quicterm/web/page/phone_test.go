package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

// A phone is a page on one, with a prompt.
type phone struct{ *view }

// phone opens a page as a phone does, whose finger is what points.
func (d *desk) phone(t *testing.T) phone {
	t.Helper()
	undo, err := d.browser.Prepare(t.Context(), `() => {
		const real = matchMedia;
		window.matchMedia = (query) => real.call(window, query === "(pointer: coarse)" ? "all" : query);
	}`)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := d.prompt(t)
	p := phone{v}
	p.do(undo(p.ctx))
	p.turn(390, 844)
	p.is(`tested.shown().cols < 50`)
	return p
}

// command has Chromium do a command of its own protocol.
func (v *view) command(method string, params any) {
	v.t.Helper()
	v.do(v.page.Chromium(v.ctx, method, params))
}

// turn gives the page the screen of a phone.
func (p phone) turn(width, height int) {
	p.t.Helper()
	p.do(p.page.Resize(p.ctx, width, height))
}

// touch has fingers at some points, or no finger any more.
func (p phone) touch(points ...bidi.Point) {
	p.t.Helper()
	p.do(p.page.Touch(p.ctx, points...))
}

// button is where a button is that has a name.
func (p phone) button(name string) (at bidi.Point) {
	p.t.Helper()
	return p.middle(`[...document.querySelectorAll("button")].find((b) => (b.ariaLabel ?? b.textContent) === "` + name + `" && b.offsetParent)`)
}

// middle is where the middle of an element is.
func (p phone) middle(element string) (at bidi.Point) {
	p.t.Helper()
	return eval[bidi.Point](p.view, `(() => {
		const box = (`+element+`).getBoundingClientRect();
		return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
	})()`)
}

// press touches a button that has a name, for a time.
func (p phone) press(name string, held time.Duration) {
	p.t.Helper()
	p.touch(p.button(name))
	time.Sleep(held)
	p.touch()
}

// drag moves a finger.
func (p phone) drag(from, to bidi.Point) {
	p.t.Helper()
	p.touch(from)
	for i := 1.0; i <= 10; i++ {
		p.touch(bidi.Point{X: from.X + (to.X-from.X)*i/10, Y: from.Y + (to.Y-from.Y)*i/10})
	}
	p.touch()
}

// composes has an input method of Chromium show a text that is not whole.
func (v *view) composes(text string) {
	v.t.Helper()
	n := len([]rune(text))
	v.command("Input.imeSetComposition", map[string]any{"text": text, "selectionStart": n, "selectionEnd": n})
}

func (v *view) inserts(text string) {
	v.t.Helper()
	v.command("Input.insertText", map[string]any{"text": text})
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
		if r != ' ' { // which no line ends with
			pattern.WriteString(regexp.QuoteMeta(string(r)))
		}
		pattern.WriteString(`\s*`)
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
	eval[string](b.view, `(navigator.clipboard.readText = async () => "there-", "")`)
	keys("hi-there-you", func() { // what is pasted deletes nothing of it
		b.inserts("hi-")
		b.press("Paste", 0)
		b.await(wrapped("hi-there-"))
		b.composes("you")
		b.inserts("you")
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
	b.enter("seq 500; echo a-word and-more\r")
	b.await(`(?m)^a-word`)
	b.drag(bidi.Point{X: 200, Y: 200}, bidi.Point{X: 200, Y: 600})
	b.is(`tested.shown().buffer.active.viewportY < tested.shown().buffer.active.baseY - 15`)
	b.drag(bidi.Point{X: 200, Y: 600}, bidi.Point{X: 200, Y: 100})
	b.drag(bidi.Point{X: 200, Y: 600}, bidi.Point{X: 200, Y: 100})
	b.is(`tested.shown().buffer.active.viewportY === tested.shown().buffer.active.baseY`)
	if d.kind == bidi.Chromium {
		b.flick()
		b.selectAndPaste()
	}

	b.enter("(trap 'set -- $(stty size); echo size-$1-$2' WINCH; echo waits; while :; do sleep 0.1; done)\r")
	b.await(`(?m)^waits`)
	b.turn(844, 390)
	b.await(`\bsize-\d\d-\d+`)
	if n := len(regexp.MustCompile(`\bsize-\d`).FindAllString(b.text(), -1)); n != 1 {
		t.Errorf("a rotation makes %d resizes:\n%s", n, b.text())
	}
	b.turn(390, 844)
	b.await(`\bsize-\d\d-4\d`)
	b.touch(bidi.Point{X: 100, Y: 300}, bidi.Point{X: 200, Y: 300})
	for apart := 100.0; apart <= 150; apart += 10 {
		b.touch(bidi.Point{X: 100, Y: 300}, bidi.Point{X: 100 + apart, Y: 300})
	}
	b.touch()
	b.await(`\bsize-\d\d-[123]\d`)

	b.do(b.page.Press(b.ctx, bidi.Control, "c"))
	b.await(`\^C\s*\n\S*[#$]`)
	b.enter("printf '\\033[?1049hfull'; stty raw -echo; cat -v\r")
	b.await(`full`)
	b.drag(bidi.Point{X: 200, Y: 200}, bidi.Point{X: 200, Y: 400})
	b.await(`\^\[\[A\^\[\[A`)
	eval[string](b.view, `(tested.shown().write("\x1b[?1000h\x1b[?1006h"), "")`) // as a program that asks for the mouse
	b.is(`tested.shown().modes.mouseTrackingMode === "vt200"`)
	b.drag(bidi.Point{X: 200, Y: 400}, bidi.Point{X: 200, Y: 200})
	b.await(wrapped("^[[<65;"))
}

// flick takes a finger off while it moves: the history moves on. The times of the events are those of a finger.
func (p phone) flick() {
	p.t.Helper()
	eval[string](p.view, `(addEventListener("touchend", () => { window.left = tested.shown().buffer.active.viewportY; }, { once: true }), "")`)
	at := float64(time.Now().UnixMilli()) / 1000
	for i := range 12 {
		kind, points := "touchMove", []bidi.Point{{X: 200, Y: 200 + 20*float64(i)}}
		switch i {
		case 0:
			kind = "touchStart"
		case 11:
			kind, points = "touchEnd", []bidi.Point{}
		}
		p.command("Input.dispatchTouchEvent", map[string]any{"type": kind, "touchPoints": points, "timestamp": at + float64(i)*0.016})
	}
	p.is(`tested.shown().buffer.active.viewportY < window.left - 3`)
	p.touch(bidi.Point{X: 200, Y: 200}) // which stops it
	p.touch()
	eval[string](p.view, `(tested.shown().scrollToBottom(), "")`)
	p.is(`tested.shown().buffer.active.viewportY === tested.shown().buffer.active.baseY`)
}

// selectAndPaste selects a word, drags the handles of the selection, copies it and pastes it.
func (p phone) selectAndPaste() {
	p.t.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		p.command("Browser.setPermission", map[string]any{"permission": map[string]any{"name": name}, "setting": "granted"})
	}
	const screen = `tested.shown().element.querySelector(".xterm-screen").getBoundingClientRect()`
	at := eval[bidi.Point](p.view, `(() => {
		const t = tested.shown(), box = `+screen+`;
		const row = tested.text().split("\n").findIndex((line) => line.startsWith("a-word"));
		return { x: box.x + 20, y: box.y + (row + 0.5) * box.height / t.rows };
	})()`)
	selected := func(want string) {
		p.t.Helper()
		p.is(fmt.Sprintf(`tested.shown().getSelection() === %q`, want))
	}
	p.touch(at)
	selected("a-word")
	p.touch()
	cell := eval[float64](p.view, screen+`.width / tested.shown().cols`)
	for i, step := range []struct {
		cells float64
		want  string
	}{{2, "word"}, {4, "word and"}} {
		handle := p.middle(fmt.Sprintf(`[...tested.shown().element.querySelectorAll(".handle")][%d]`, i))
		p.drag(handle, bidi.Point{X: handle.X + step.cells*cell, Y: handle.Y})
		selected(step.want)
	}
	p.press("Copy", 0)
	selected("")
	p.enter("echo ")
	p.press("Paste", 0)
	p.await(`echo word and`)
	p.enter(".\r")
	p.await(`(?m)^word and\.`)
}

// A desktop is a terminal of tmux in which qt shows a session.
type desktop struct {
	name string
	desk *desk
}

// desktop shows in a terminal what a command of qt attaches to.
func (p phone) desktop(cols, rows int, command string) desktop {
	p.t.Helper()
	d := desktop{fmt.Sprintf("of-%d", cols), p.desk}
	p.t.Cleanup(func() { d.tmux("kill-server") })
	if out, err := d.tmux("-f", os.DevNull, "new-session", "-d", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows),
		"exec "+p.desk.dir+"/qt "+command, ";", "set-option", "status", "off"); err != nil {
		p.t.Fatalf("tmux: %v: %s", err, out)
	}
	return d
}

func (d desktop) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-L", d.name}, args...)...)
	cmd.Env = append(d.desk.env, "TERM=xterm-256color", "TMUX_TMPDIR="+d.desk.dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// cells are all that the terminal shows and has in its scrollback, with colours, and where its cursor is.
func (d desktop) cells() string {
	out, _ := d.tmux("capture-pane", "-peNS", "-", ";", "display-message", "-p", "cursor #{cursor_x},#{cursor_y}")
	return out
}

// A phone beside desktops shows the session at its size, takes the size when asked to, and gives it back: all of the desktops'
// cells are then what they were.
func playBeside(t *testing.T, d *desk) {
	const fit = "Give the session the size of this screen"
	b := d.phone(t)
	prompts := regexp.MustCompile(`[#$%>]`).MatchString
	wide := b.desktop(200, 50, "connect -s wide .")
	b.until(func() bool { return prompts(wide.cells()) }, func() string { return "no prompt:\n" + wide.cells() })
	small := b.desktop(120, 30, "attach --share . wide")
	b.until(func() bool { return prompts(small.cells()) }, func() string { return "no prompt:\n" + small.cells() })
	b.show("Sessions")
	b.is(`document.querySelector("#list").textContent.includes("wide")`)
	eval[string](b.view, `([...document.querySelectorAll("#list li button")].find(b => b.textContent.startsWith("wide")).click(), "")`)
	b.is(`tested.shown()?.cols === 200`)
	b.enter("seq -f 'line %g' 200; printf 'wide-%.0s' $(seq 39); printf '\\033[1;32m%s\\033[0m\\n' en''d\r")
	b.await(`(wide-){39}end`)
	b.is(`(() => { const s = document.querySelector("section:not([hidden])"); return s.scrollWidth > 3 * s.clientWidth; })()`)
	b.show("Read as text")
	b.is(`(() => { const p = document.querySelector(".read pre"); return p.textContent.includes("wide-end") && p.scrollWidth <= p.clientWidth; })()`)
	eval[string](b.view, `(document.querySelector(".read button").click(), "")`)
	b.is(`!document.querySelector(".read")`)

	id := eval[string](b.view, `sessionStorage.getItem("sessions").split(" ").at(-1)`)
	all := func() string {
		return fmt.Sprint("== holder\n", d.peek(t, id, "1000"), "\n") +
			"== wide\n" + wide.cells() + "== small\n" + small.cells()
	}
	var before string
	b.until(func() bool { // what was printed has reached all
		before = all()
		return len(regexp.MustCompile(`wide-[^\n]{0,30}end`).FindAllString(before, -1)) == 2 && before == all()
	}, func() string { return "the desktops do not show the session:\n" + before })
	ways := [][2]string{
		{"the button", `(document.querySelector("[aria-label^=Give]").click(), "")`},
		{"another page", `(Object.defineProperty(document, "hidden", { get: () => true, configurable: true }),
			document.dispatchEvent(new Event("visibilitychange")), "")`},
	}
	for _, way := range ways {
		b.show(fit)
		b.is(`tested.shown().cols < 50 && document.querySelector("[aria-label^=Give]").ariaPressed === "true"`)
		b.until(func() bool { return wide.cells() != "" && all() != before }, func() string { return "the desktops are not told" })
		eval[string](b.view, way[1])
		b.is(`tested.shown().cols === 200`)
		after := ""
		b.until(func() bool { after = all(); return after == before }, func() string {
			return "after a visit that ended by " + way[0] + ":\n" + after + "\nbefore:\n" + before
		})
	}
}

// show presses a button by script: a finger does so in "keys of a phone".
func (p phone) show(name string) {
	p.t.Helper()
	eval[string](p.view, `([...document.querySelectorAll("button")].find((b) => (b.ariaLabel ?? b.textContent) === "`+name+`").click(), "")`)
}
