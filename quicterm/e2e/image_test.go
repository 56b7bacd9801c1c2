//go:build linux || darwin

package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
)

// imageSize is that of a large screenshot: more than any part that output is handled in.
const imageSize = 5 << 20

// images are images of that size, in the protocols of terminals.
func images() map[string]string {
	var sixel, kitty strings.Builder
	sixel.WriteString("\x1bP0;1;0q\"1;1;640;480#0;2;100;0;0" + strings.Repeat("#0!120~@AB?w$-", imageSize/14) + "\x1b\\")
	kitty.WriteString("\x1b_Ga=T,f=24,s=640,v=480,i=7,m=1;")
	for kitty.Len() < imageSize {
		kitty.WriteString(strings.Repeat("QUJD", 1024) + "\x1b\\\x1b_Gm=1;")
	}
	kitty.WriteString("\x1b\\\x1b_Gm=0;\x1b\\")
	return map[string]string{
		"sixel": sixel.String(), "kitty": kitty.String(),
		"iTerm2": "\x1b]1337;File=name=eA==;size=3932160;inline=1:" + strings.Repeat("QUJD", imageSize/4) + "\a",
	}
}

// A client gets images as the program has printed them, and as soon as text. Who comes later sees where they were.
func TestImages(t *testing.T) {
	h := newHost(t)
	h.Start()
	title := regexp.MustCompile(`\x1b\[2[23];2t|\x1b\]2;qt: [^\x1b]*\x1b\\`) // in which qt says how much is to come
	show := func(name, output string) time.Duration {
		h.Write(name, output)
		command := "stty -opost; printf begin; cat " + h.Path(name) + "; printf ' end'; cat"
		x := rig.Open(t, h.Via(h.Addr, "connect", []string{"-t", "-s", name}, command))
		x.Expect("begin")
		start := time.Now()
		x.Expect(" end")
		took := time.Since(start)
		if got := title.ReplaceAllLiteralString(x.Out.String(), ""); !strings.Contains(got, "begin"+output+" end") {
			t.Errorf("%s: the terminal got something else, %d bytes", name, x.Out.Len())
		}
		return took
	}
	text := show("text", strings.Repeat(strings.Repeat("the quick brown fox ", 3)+"\r\n", imageSize/62))
	for name, image := range images() {
		t.Logf("%s took %v, and text as long %v", name, show(name, image), text)
		y := rig.Open(t, h.QT("attach", name))
		y.Expect(`begin.*\[image\].* end`)
	}
}

// A session keeps of images no more than of other output, and knows where they were.
func TestImageLargerThanBuffer(t *testing.T) {
	h := newHost(t)
	h.Settings["buffer_size"] = `"1MiB"`
	h.Start()
	for name, image := range images() {
		h.Write(name, image)
		command := "printf begin; cat " + h.Path(name) + "; printf end; cat"
		if out, err := h.Via(h.Addr, "connect", []string{"-d", "-s", name}, command).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		seen := ""
		for end := time.Now().Add(rig.Patience); !strings.Contains(seen, "end"); time.Sleep(50 * time.Millisecond) {
			out, err := h.QT("peek", name).Output()
			if seen = string(out); time.Now().After(end) {
				t.Fatalf("%s: peek shows %q, %v", name, seen, err)
			}
		}
		if !strings.Contains(seen, "begin[image]end") {
			t.Errorf("%s: peek shows %q", name, seen)
		}
	}
}
