package main

import (
	"os"
	"path/filepath"
	"testing"
)

// axe-core finds nothing serious: in a terminal, in the list of sessions, on a phone.
func playUnseen(t *testing.T, d *desk) {
	modules := t.TempDir()
	if err := install(modules, true); err != nil {
		t.Fatal(err)
	}
	axe, err := os.ReadFile(filepath.Join(modules, "axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := d.prompt(t)
	if err := v.page.Eval(v.ctx, "(() => {"+string(axe)+"\n})()", nil); err != nil {
		t.Fatal(err)
	}
	for _, state := range []struct {
		name, script string
		width        int
	}{
		{"a terminal", `null`, 1000},
		{"the list", `document.getElementById("sessions").click()`, 1000},
		{"the list on a phone", `null`, 390},
		{"a phone", `document.getElementById("list").close()`, 390},
	} {
		v.do(v.page.Resize(v.ctx, state.width, 844))
		v.do(v.page.Eval(v.ctx, state.script, nil))
		if passed := eval[int](v, `axe.run().then(({ passes }) => passes.length)`); passed < 10 {
			t.Errorf("%s: axe-core has looked at %d rules", state.name, passed)
		}
		for _, found := range eval[[]string](v, `axe.run().then(({ violations }) => violations
			.filter((v) => ["serious", "critical"].includes(v.impact))
			.flatMap((v) => v.nodes.map((n) => v.help + ": " + n.html)))`) {
			t.Errorf("%s: %s", state.name, found)
		}
	}
}
