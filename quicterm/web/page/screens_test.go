package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

var screens = flag.Bool("screens", false, "take the pictures of docs/browser.md")

// TestScreens takes pictures of the page, on a desktop and on a phone.
func TestScreens(t *testing.T) {
	if !*screens {
		t.Skip("by -screens only")
	}
	d := newDesk(t, bidi.Chromium)
	const output = "\\033[1;34m==>\\033[0m building\\n\\033[1;34m==>\\033[0m testing 214 packages\\n" +
		"\\033[32mok\\033[0m    parser     0.8 s\\n\\033[32mok\\033[0m    planner    2.1 s\\n" +
		"\\033[31mFAIL\\033[0m  storage    4.6 s\\n      the journal is not empty\\n" +
		"\\033[32mok\\033[0m    network    6.0 s\\n\\n\\033[1m213 passed, 1 failed\\033[0m\\n"
	script := "PS1='server$ '; printf '\\033]2;api\\007'; make() { printf '" + output + "'; }; clear\n"
	if err := os.WriteFile(filepath.Join(d.dir, "begin"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(v *view) {
		v.enter(". ./begin\r")
		v.await(`^server\$$`)
		v.enter("make test\r")
		v.await(`1 failed\nserver\$$`)
	}
	v, _ := d.prompt(t)
	v.do(v.page.Resize(v.ctx, 800, 440))
	begin(v)
	v.click("#sessions")
	v.click("#list button[value=new]")
	v.await(`[#$%>] ?$`)
	v.enter("cd " + d.dir + " && exec env PS1='server$ ' sh\r")
	v.await(`(?m)^server\$$`)
	v.enter("printf '\\033]2;logs\\007'; clear\r")
	v.await(`^server\$$`)
	v.click("#tabs button")
	v.await(`1 failed`)
	v.keep("desktop")

	p := d.phone(t)
	p.command("Emulation.setDeviceMetricsOverride", map[string]any{"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true})
	begin(p.view)
	p.keep("phone")
}

// keep keeps a picture for the docs.
func (v *view) keep(name string) {
	v.t.Helper()
	v.do(v.page.Eval(v.ctx, "document.fonts.ready.then(() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 500))))", nil))
	picture, err := v.page.Picture(v.ctx)
	v.do(err)
	v.do(os.WriteFile(root+"/docs/browser-"+name+".png", picture, 0o644))
	v.t.Logf("%s: %d bytes", name, len(picture))
}
