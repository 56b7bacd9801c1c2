package main

import (
	"bytes"
	"fmt"
	"image/png"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// proxied serves the page of the daemon by a proxy, as docs/operate.md has it, and returns its URL.
func (m *machine) proxied(t *testing.T) string {
	target := &url.URL{Scheme: "http", Host: m.page}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		client, _, _ := net.SplitHostPort(r.In.RemoteAddr)
		r.Out.Header.Set("X-Forwarded-For", client)
	}})
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	return proxy.URL + "/"
}

// onlyOldKeys removes the files of keys that the account has enrolled since, when the test has ended.
func onlyOldKeys(t *testing.T) {
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	files := func() []string {
		found, err := filepath.Glob(account.HomeDir + "/.config/quicterm/keys/*")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := "\n" + strings.Join(files(), "\n") + "\n"
	t.Cleanup(func() {
		for _, file := range files() {
			if !strings.Contains(before, "\n"+file+"\n") {
				os.Remove(file)
			}
		}
	})
}

// scan has qt web --qr print a link to a page in a terminal, and reads its code in a picture of that.
func (v *view) scan(page string) (link string) {
	v.t.Helper()
	v.do(v.page.Resize(v.ctx, 1000, 900))
	v.enter(fmt.Sprintf("clear; XDG_CONFIG_HOME=%[1]s/c XDG_STATE_HOME=%[1]s/state %[1]s/qt web --qr --url %[2]s\r",
		v.desk.dir, page))
	v.await("show it to nobody")
	err := error(nil)
	v.until(func() bool {
		var bitmap *gozxing.BinaryBitmap
		var code *gozxing.Result
		shot, failed := v.page.Picture(v.ctx)
		v.do(failed)
		picture, failed := png.Decode(bytes.NewReader(shot))
		v.do(failed)
		if bitmap, err = gozxing.NewBinaryBitmapFromImage(picture); err == nil {
			code, err = qrcode.NewQRCodeReader().Decode(bitmap, nil)
		}
		if err == nil {
			link = code.GetText()
		}
		return err == nil
	}, func() string { return "no QR code: " + err.Error() })
	return link
}

// click waits until the page shows something, and clicks on it.
func (v *view) click(selector string) {
	v.t.Helper()
	v.until(func() bool {
		return eval[bool](v, fmt.Sprintf(`(() => {
			const found = document.querySelector(%q);
			if (!found?.checkVisibility()) return false;
			found.click();
			return true;
		})()`, selector))
	}, func() string { return "the page does not show " + selector + "; status: " + v.status() })
}

// call gives the device a name that no other test's has, whose account is the same one.
func (v *view) call() (name string) {
	v.t.Helper()
	name = "a phone of " + filepath.Base(v.desk.dir)
	v.until(func() bool { return eval[bool](v, `document.getElementById("enter")?.open ?? false`) },
		func() string { return "no dialogue" })
	v.do(v.page.Eval(v.ctx, fmt.Sprintf(`void (document.getElementById("enter-name").value = %q)`, name), nil))
	return name
}

// A phone gets in by the code that qt web --qr shows, is remembered, and comes back without a link after its browser was
// started again, until it is revoked. The code is good once.
func playEnter(t *testing.T, d *desk) {
	page := d.proxied(t)
	v, _ := d.prompt(t)
	link := v.scan(page)
	p := d.visit(t, link)
	name := regexp.MustCompile(` on \w+$`)
	p.until(func() bool {
		return name.MatchString(eval[string](p, `document.getElementById("enter-name")?.value ?? ""`))
	}, func() string { return "no dialogue" })
	text := eval[string](p, `document.getElementById("enter").innerText`)
	if !strings.Contains(text, strings.TrimSuffix(page, "/")) {
		t.Errorf("the dialogue names no origin: %s", text)
	}
	if address := eval[string](p, `location.href`); address != page {
		t.Errorf("the address is %s", address)
	}
	called := p.call()
	p.click("#enter button[value=remember]")
	p.click("#list button[value=new]")
	p.await(`[#$%>] ?$`)
	p.enter("echo $((6*7))\r")
	p.await(`(?m)^42`)
	own := eval[string](p, `document.querySelector("#tabs button").textContent`)

	thief := d.visit(t, link)
	thief.click("#enter button[value=once]")
	thief.awaitStatus("good once")

	d.browser.Close()
	d.open(t)
	p = d.visit(t, page)
	p.until(func() bool { return eval[int](p, `document.querySelectorAll("#list li").length`) == 2 },
		func() string { return "the list does not show both sessions; status: " + p.status() })
	p.do(p.page.Eval(p.ctx, fmt.Sprintf(`void [...document.querySelectorAll("#list li button")]
		.find((button) => button.querySelector("b").textContent === %q).click()`, own), nil))
	p.await(`(?m)^42`)
	d.run(t, "revoke", called, ".")
	p.awaitStatus("withdrawn|revoked")
	p.do(p.page.Reload(p.ctx))
	p.click("#list button[value=new]")
	p.awaitStatus("gets in no more")
}

// A device that forgets itself is none of the account any more, on both sides.
func playForget(t *testing.T, d *desk) {
	page := d.proxied(t)
	v, _ := d.prompt(t)
	p := d.visit(t, v.scan(page))
	called := p.call()
	p.click("#enter button[value=remember]")
	p.until(func() bool { return eval[bool](p, `document.getElementById("list").open`) },
		func() string { return "the page does not get in: " + p.status() })
	if listed := d.run(t, "devices", "."); !strings.Contains(listed, called) {
		t.Errorf("the account does not know %s:\n%s", called, listed)
	}
	p.click("#forget")
	p.awaitStatus("forgotten")
	v.do(p.page.Reload(p.ctx))
	p.awaitStatus("needs a link")
	if listed := d.run(t, "devices", "."); strings.Contains(listed, called) {
		t.Errorf("the account knows the device:\n%s", listed)
	}
}

// A guest sees the session of the link and nothing else, until the share is ended.
func playGuest(t *testing.T, d *desk) {
	page := d.proxied(t)
	v, _ := d.prompt(t)
	v.enter("echo se''en\r")
	v.await(`(?m)^seen`)
	link := strings.TrimSpace(d.run(t, "share", "--url", page, ".", v.session()))
	guest := d.visit(t, link)
	guest.await(`(?m)^seen`)
	if told := eval[string](guest, `document.getElementById("ask").innerText`); !strings.Contains(told, "you watch until") {
		t.Errorf("the guest is told %q", told)
	}
	for id, offered := range map[string]string{"sessions": "the list of sessions", "files": "to copy files"} {
		if eval[bool](guest, fmt.Sprintf(`document.getElementById(%q).checkVisibility()`, id)) {
			t.Errorf("a guest is offered %s", offered)
		}
	}
	guest.enter("echo ty''ped\r")
	v.enter("echo mo''re\r")
	guest.await(`(?m)^more`)
	if strings.Contains(v.text(), "typed") {
		t.Errorf("a guest who watches has typed:\n%s", v.text())
	}
	share := regexp.MustCompile(v.session() + `-[0-9a-f]{4}`).FindString(d.run(t, "shares", "."))
	d.run(t, "shares", "--end", share, ".")
	guest.awaitStatus("withdrawn|ended")
}
