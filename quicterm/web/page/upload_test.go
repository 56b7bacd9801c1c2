package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

// given makes a file in the page, as a DataTransfer: notes.txt with many bytes, huge with more than are copied in a moment, or
// picture.png.
const given = `() => {
	window.given = (name) => {
		const transfer = new DataTransfer();
		const parts = {
			"notes.txt": () => [Uint8Array.from({ length: 1e6 + 7 }, (_, i) => i * 7 + (i >> 8))],
			"huge": () => Array(64).fill(new Uint8Array(1 << 20)),
			"picture.png": () => [Uint8Array.of(0x89, 0x50, 0x4e, 0x47)],
		};
		transfer.items.add(new File(parts[name](), name, { type: name === "picture.png" ? "image/png" : "" }));
		return transfer;
	};
}`

// TestUpload plays a person who chooses a file, drops some, stops a large one, and pastes pictures.
func TestUpload(t *testing.T) {
	t.Parallel()
	d := newDesk(t, bidi.Chromium)
	if _, err := d.browser.Prepare(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 1_000_007)
	for i := range want {
		want[i] = byte(i*7 + i>>8)
	}
	v, _ := d.prompt(t)
	v.enter("mkdir work && cd work && echo r''eady\r")
	v.await(`(?m)^ready$`)
	told := func(pattern string) {
		t.Helper()
		said := ""
		v.until(func() bool {
			said = eval[string](v, `document.getElementById("copies").textContent`)
			return regexp.MustCompile(pattern).MatchString(said)
		}, func() string { return "the page says " + said + ", not " + pattern })
	}
	copied := func(script, name string) {
		t.Helper()
		v.do(v.page.Eval(v.ctx, script, nil))
		told(`^Copied ` + name + ` to \S+/workClose$`)
		if got, err := os.ReadFile(filepath.Join(d.dir, "work", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, not those of the file: %v", name, len(got), err)
		}
	}
	choose := `(() => {
		const chosen = document.getElementById("chosen");
		chosen.files = given("notes.txt").files;
		chosen.dispatchEvent(new Event("change"));
	})()`
	copied(choose, "notes.txt")
	copied(choose, "notes-1.txt") // the first one stays
	drop := func(name string) string {
		return fmt.Sprintf(`void document.body.dispatchEvent(new DragEvent("drop", {
			bubbles: true, cancelable: true, dataTransfer: given(%q),
		}))`, name)
	}
	copied(drop("notes.txt"), "notes-2.txt")
	v.do(v.page.Eval(v.ctx, drop("huge"), nil))
	v.until(func() bool {
		_, err := os.Stat(filepath.Join(d.dir, "work", "huge.qt.part"))
		return err == nil
	}, func() string { return "no part of a large file is written" })
	v.click("#copies button")
	told(`^Not copied: stoppedClose$`)
	names, err := os.ReadDir(filepath.Join(d.dir, "work"))
	if err != nil || len(names) != 3 {
		t.Errorf("the directory has %v, %v", names, err)
	}

	v.enter("printf '\\033[?2004h'; cat -v\r")
	v.await(`(?m)cat -v$`)
	v.do(v.page.Eval(v.ctx, `void tested.shown().textarea.dispatchEvent(new ClipboardEvent("paste", {
		bubbles: true, cancelable: true, clipboardData: given("picture.png"),
	}))`, nil))
	pasted := `\^\[\[200~(/\S+?/\.cache/quicterm/paste/[0-9a-z-]+\.png)\^\[\[201~`
	v.await(pasted)
	v.do(v.page.Eval(v.ctx, `void (navigator.clipboard.read = async () =>
		[new ClipboardItem({ "image/png": new Blob([given("picture.png").files[0]], { type: "image/png" }) })])`, nil))
	v.click("#files")
	v.click("#ask button:nth-of-type(2)")
	v.await(pasted + `[^~]+200~[^~]+201~`) // in two lines
	all := regexp.MustCompile(pasted).FindAllStringSubmatch(strings.ReplaceAll(v.text(), "\n", ""), -1)
	if len(all) != 2 {
		t.Errorf("pasted %q", all)
	}
	for _, found := range all {
		if got, err := os.ReadFile(found[1]); string(got) != "\x89PNG" {
			t.Errorf("%s has %q, %v", found[1], got, err)
		}
		os.Remove(found[1])
	}
}
