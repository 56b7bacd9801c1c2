package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

// A desk is where scenarios are played: a machine, and a browser.
type desk struct {
	*machine
	kind    bidi.Kind
	browser *bidi.Browser
	profile string
}

// scenarios are what a person does, in each browser. A further one is a function and a row here.
var scenarios = []struct {
	name string
	play func(t *testing.T, d *desk)
	only bidi.Kind // or both
}{
	{"a page", playPage, ""},
	{"a link is good once", playLink, ""},
	{"programs", playPrograms, ""},
	{"the daemon restarts while a person types", playRestart, ""},
	{"tabs", playTabs, ""},
	{"a long history", playHistory, ""},
	{"a flood", playFlood, ""},
	{"keyboards", playKeyboards, ""},
	{"a phone turns", playTurn, ""},
	{"a device is forgotten", playForget, ""},
	{"a guest watches", playGuest, ""},
	{"a person who does not see", playUnseen, ""},
	{"fingers", playFingers, ""},
	{"a phone beside desktops", playBeside, ""},
	{"keys of a phone", playKeys, bidi.Chromium}, // Firefox has no command for an input method
}

// TestBrowsers plays all scenarios in Chromium and in Firefox, at the same time.
func TestBrowsers(t *testing.T) {
	onlyOldKeys(t)
	for _, kind := range []bidi.Kind{bidi.Chromium, bidi.Firefox} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, kind)
			play := func(name string, play func(*testing.T, *desk)) {
				began := time.Now()
				t.Run(name, func(t *testing.T) { play(t, d) })
				t.Logf("%s: %v", name, time.Since(began).Round(time.Millisecond))
			}
			play("a phone gets in by a code", playEnter) // it starts the browser again
			back := leave(t, d)
			for _, s := range scenarios {
				if s.only == "" || s.only == kind {
					play(s.name, s.play)
				}
			}
			play("output of 30 seconds without a network", back)
		})
	}
}

// newDesk starts a machine and a browser, which end with the test.
func newDesk(t *testing.T, kind bidi.Kind) *desk {
	d := &desk{machine: newMachine(t), kind: kind}
	d.profile = filepath.Join(d.dir, "profile")
	t.Cleanup(func() {
		if d.browser != nil {
			d.browser.Close()
		}
	})
	d.open(t)
	return d
}

// open starts the browser.
func (d *desk) open(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	prepare, err := os.ReadFile("testdata/prepare.js")
	if err == nil {
		d.browser, err = bidi.Start(ctx, d.kind, d.profile)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, function, _ := strings.Cut(string(prepare), "\n() =>")
	if _, err := d.browser.Prepare(ctx, "() =>"+function); err != nil {
		t.Fatal(err)
	}
}

// A view is a page in the browser, which a person sees.
type view struct {
	t    *testing.T
	desk *desk
	page *bidi.Page
	ctx  context.Context
}

// visit opens a page, which is closed when the test has ended, and so are all sessions.
func (d *desk) visit(t *testing.T, url string) *view {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*patience)
	browser := d.browser
	page, err := browser.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if browser == d.browser { // or it was started again
			if err := page.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		for _, id := range d.sessions(t) {
			d.run(t, "kill", ".", id)
		}
		cancel()
	})
	v := &view{t, d, page, ctx}
	arrived := false
	v.until(func() bool { // until then, another page may be there
		return page.Eval(ctx, `location.protocol === "http:" && document.readyState === "complete"`, &arrived) == nil && arrived
	}, func() string { return "no page" })
	return v
}

// prompt opens a page by a qt web of its own, and waits for the prompt of a new session.
func (d *desk) prompt(t *testing.T) (*view, *relay) {
	t.Helper()
	r := d.web(t)
	v := d.visit(t, r.file)
	v.await(`[#$%>] ?$`) // of the account's own shell
	v.enter("cd " + d.dir + " && exec env PS1='$ ' sh\r")
	v.await(`(?m)^\$$`)
	return v, r
}

// eval returns the value of an expression in the page.
func eval[T any](v *view, expression string) (value T) {
	v.t.Helper()
	if err := v.page.Eval(v.ctx, expression, &value); err != nil {
		v.t.Fatal(err)
	}
	return value
}

// do fails if something could not be done in the page.
func (v *view) do(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// enter types text.
func (v *view) enter(text string) {
	v.t.Helper()
	v.do(v.page.Type(v.ctx, text))
}

func (v *view) status() string {
	v.t.Helper()
	return eval[string](v, `document.getElementById("status")?.textContent ?? ""`)
}

func (v *view) text() string {
	v.t.Helper()
	return strings.TrimRight(eval[string](v, `window.tested?.text() ?? ""`), "\n")
}

// until waits for a condition. The message says what is missing.
func (v *view) until(condition func() bool, message func() string) {
	v.t.Helper()
	for start := time.Now(); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			v.t.Fatal(message())
		}
	}
}

// await waits until the terminal shows something.
func (v *view) await(pattern string) {
	v.t.Helper()
	re := regexp.MustCompile(pattern)
	text := ""
	v.until(func() bool { text = v.text(); return re.MatchString(text) },
		func() string { return "no " + pattern + " in:\n" + text + "\nstatus: " + v.status() })
}

// awaitStatus waits until the page says something of its connection.
func (v *view) awaitStatus(pattern string) {
	v.t.Helper()
	re := regexp.MustCompile(pattern)
	v.until(func() bool { return re.MatchString(v.status()) }, func() string { return "the page says " + v.status() + ", not " + pattern })
}

// A row and its pieces are those of qt peek --json.
type row struct {
	Runs [][4]string
	Wrap bool
}

// cells are what a terminal shows.
type cells struct {
	Cols, Rows int
	Cursor     [2]int
	Alternate  bool
	Screen     []row
	Scrollback []row
}

// wantSame waits until the page shows the same as the holder has, cell by cell, with rows of the scrollback.
func (v *view) wantSame(session string, scrollback string) {
	v.t.Helper()
	var page, holder cells
	v.until(func() bool {
		page = eval[cells](v, "tested.cells("+scrollback+")")
		holder = v.desk.peek(v.t, session, scrollback)
		return reflect.DeepEqual(page, holder)
	}, func() string { return "the page differs from the holder:\n" + difference(page, holder) })
}

// peek returns what the holder has.
func (m *machine) peek(t *testing.T, session, scrollback string) (holder cells) {
	t.Helper()
	if err := json.Unmarshal([]byte(m.run(t, "peek", "--json", "--lines", scrollback, ".", session)), &holder); err != nil {
		t.Fatal(err)
	}
	return holder
}

// difference tells the first rows that differ.
func difference(page, holder cells) string {
	of := func(c cells) (lines []string) {
		for _, r := range append(c.Scrollback, c.Screen...) {
			b, _ := json.Marshal(r)
			lines = append(lines, string(b))
		}
		return lines
	}
	a, b := of(page), of(holder)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "row " + a[i] + "\nis  " + b[i]
		}
	}
	page.Screen, page.Scrollback, holder.Screen, holder.Scrollback = nil, nil, nil, nil
	x, _ := json.Marshal([]any{page, len(a)})
	y, _ := json.Marshal([]any{holder, len(b)})
	return string(x) + "\n" + string(y)
}

// session returns the only session.
func (v *view) session() string {
	v.t.Helper()
	ids := v.desk.sessions(v.t)
	if len(ids) != 1 {
		v.t.Fatalf("sessions: %q", ids)
	}
	return ids[0]
}
