package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is how long anything may take on a busy machine.
const patience = time.Minute

// A browser shows the page of a qt web of its own, whose session is on this machine.
type browser struct {
	t   *testing.T
	ctx context.Context
	env []string
	bin string
}

// open starts qt web, and opens its page. The programs are those of make build.
func open(t *testing.T) *browser {
	bin, err := filepath.Abs(root + "/bin")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "p") // short, for sockets
	if err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("runtime_dir = %q\nstate_dir = %q\n", dir+"/r", dir+"/s")
	if err := os.MkdirAll(dir+"/c/quicterm", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/c/quicterm/qtd.toml"} {
		if err := os.WriteFile(dir+file, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wrapper := "#!/bin/sh\nexec " + bin + "/qtd \"$@\" --config " + dir + "/c/quicterm/qtd.toml\n"
	if err := os.WriteFile(dir+"/qtd", []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("cp", bin+"/qt", dir+"/qt").Run(); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, bin: dir, env: append(os.Environ(), "XDG_CONFIG_HOME="+dir+"/c", "SHELL=/bin/sh", "DISPLAY=", "WAYLAND_DISPLAY=")}
	qt := exec.Command(dir+"/qt", "web")
	qt.Env = b.env
	out, err := qt.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := qt.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill := exec.Command(dir+"/qt", "ls", "--json")
		kill.Env = b.env
		listed, _ := kill.Output()
		for _, id := range regexp.MustCompile(`"id": ?"([0-9a-f]+)"`).FindAllStringSubmatch(string(listed), -1) {
			end := exec.Command(dir+"/qt", "kill", ".", id[1])
			end.Env = b.env
			end.Run()
		}
		qt.Process.Signal(os.Interrupt)
		qt.Wait()
	})
	var link string
	lines := bufio.NewScanner(out)
	for link == "" && lines.Scan() {
		t.Log(lines.Text())
		link = regexp.MustCompile(`file://[^ ;]+`).FindString(lines.Text())
	}
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1000, 700))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b.ctx, cancel = context.WithTimeout(ctx, 5*patience)
	t.Cleanup(cancel)
	began := time.Now()
	do(b, chromedp.Navigate(link))
	b.await("#|\\$")
	t.Logf("from the link to the prompt: %v", time.Since(began))
	return b
}

// do does something in the browser.
func do[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// eval returns the value of an expression in the page.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	return do(b, chromedp.Evaluate[string](expression))
}

func (b *browser) status() string {
	return b.eval(`document.getElementById("status")?.textContent ?? ""`)
}

// text returns what the terminal shows.
func (b *browser) text() string {
	return strings.ReplaceAll(
		b.eval(`[...document.querySelectorAll(".xterm-accessibility-tree div")].map(d => d.textContent).join("\n")`), "\u00a0", " ")
}

// await waits until the terminal shows something.
func (b *browser) await(pattern string) {
	b.t.Helper()
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		text := b.text()
		if regexp.MustCompile(pattern).MatchString(text) {
			return
		}
		if time.Since(start) > patience {
			b.t.Fatalf("no %q in:\n%s\nstatus: %s", pattern, text, b.status())
		}
	}
}

// A person types in the page, leaves it in the background, and finds it as it was.
func TestPage(t *testing.T) {
	b := open(t)
	if address := b.eval(`location.href`); strings.Contains(address, "#") {
		t.Errorf("the secret of the link is still in %s", address)
	}
	began := time.Now()
	do(b, chromedp.KeyEvent("echo $((6*7))\r"))
	b.await(`(?m)^42`)
	t.Logf("a command: %v", time.Since(began))
	do(b, chromedp.KeyEvent("stty size\r"))
	b.await(`(?m)^\d\d \d\d\d`)
	picture := do(b, chromedp.CaptureScreenshot())
	if file := os.Getenv("PAGE_SCREENSHOT"); file != "" {
		os.WriteFile(file, picture, 0o644)
	}
	began = time.Now()
	do(b, chromedp.KeyEvent("seq 1000000; echo en''d\r"))
	b.await(`(?m)^end`)
	t.Logf("6.9 MB of output: %v", time.Since(began))
	do(b, chromedp.Reload())
	for start := time.Now(); !strings.Contains(b.status(), "qt web"); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("a page without a link says %q", b.status())
		}
	}
}
