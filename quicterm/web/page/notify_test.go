package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/web/page/bidi"
)

// subscribed takes the place of a push service, which no browser of a test reaches. The subscription leads to this machine,
// where no server sends anything.
const subscribed = `() => {
	PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
		if (applicationServerKey.byteLength !== 65 || !userVisibleOnly) throw new Error("no subscription");
		localStorage.setItem("subscribed", "");
	};
	PushManager.prototype.getSubscription = async () => localStorage.getItem("subscribed") === null ? null : {
		endpoint: "https://127.0.0.1/secret-endpoint",
		toJSON: () => ({ keys: {
			p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg",
		} }),
		unsubscribe: async () => localStorage.removeItem("subscribed"),
	};
}`

// notices returns the notifications that are shown, as "name: text".
func (v *view) notices() []string {
	return eval[[]string](v, `navigator.serviceWorker.getRegistration().then((r) => r.getNotifications())
		.then((shown) => shown.map((n) => n.title + ": " + n.body))`)
}

// awaitNotice waits for a notification, the only one.
func (v *view) awaitNotice(want string) {
	v.t.Helper()
	var shown []string
	v.until(func() bool {
		shown = v.notices()
		return len(shown) == 1 && shown[0] == want
	}, func() string { return fmt.Sprintf("the browser shows %q, want %q", shown, want) })
}

// reloaded waits until the page has loaded itself again, and offers something about notifications.
func (v *view) reloaded(offer string) {
	v.t.Helper()
	text := ""
	v.until(func() bool { // there may be no page meanwhile
		return v.page.Eval(v.ctx, `performance.getEntriesByType("navigation")[0].type === "reload"
			? document.getElementById("notify")?.textContent ?? "" : ""`, &text) == nil && text == offer
	}, func() string { return fmt.Sprintf("the page offers %q, want %q", text, offer) })
}

// TestNotifications plays a person who asks for notifications on a device, in Chromium: other browsers have no command that
// delivers a message.
func TestNotifications(t *testing.T) {
	t.Parallel()
	onlyOldKeys(t)
	d := newDesk(t, bidi.Chromium)
	ctx, cancel := context.WithTimeout(t.Context(), 5*patience)
	defer cancel()
	if _, err := d.browser.Prepare(ctx, subscribed); err != nil {
		t.Fatal(err)
	}
	page := strings.Replace(d.proxied(t), "127.0.0.1", "localhost", 1) // which qt web has not
	v, _ := d.prompt(t)
	p := d.visit(t, v.scan(page))
	p.call()
	p.click("#enter button[value=remember]")
	p.click("#list button[value=new]")
	p.await(`[#$%>] ?$`)
	origin := strings.TrimSuffix(page, "/")
	p.do(p.page.Call(ctx, "permissions.setPermission", map[string]any{
		"descriptor": map[string]any{"name": "notifications"}, "state": "granted", "origin": origin,
	}, nil))
	p.click("#sessions")
	p.click("#notify")
	p.reloaded("Stop notifications")
	p.await(`[#$%>] ?$`)
	name := eval[string](p, `document.querySelector("#tabs button").textContent`)
	id := eval[string](p, `sessionStorage.getItem("sessions").split(" ").at(-1)`)

	p.enter("printf '\\a'; echo ra''ng\r")
	p.await(`(?m)^rang`)
	if shown := p.notices(); len(shown) > 0 {
		t.Errorf("a person who sees the page is told %q", shown)
	}
	p.do(p.page.Eval(ctx, `void Object.defineProperty(document, "visibilityState", { get: () => "hidden" })`, nil))
	p.enter("printf '\\a'\r")
	p.awaitNotice(name + ": rings")
	p.enter("sleep 1; head -n 1\r")
	p.awaitNotice(name + ": waits for input")

	// The page is gone, or asleep: the server tells the push service, except that this one is a trap.
	p.enter("go on\r")
	p.await(`go on\s+[^\n]*[#$%>] ?$`)
	p.enter("sleep 12; echo ask; head -n 1\r")
	p.await(`sleep 12; echo ask; head -n 1\s*$`)
	p.do(p.page.Navigate(ctx, "about:blank"))
	p.until(func() bool { return strings.Contains(d.logText(), "127.0.0.1:443 is no push service") }, func() string {
		return "no message is sent:\n" + d.logText()
	})
	if strings.Contains(d.logText(), "secret-endpoint") {
		t.Error("the endpoint is in the log")
	}
	message := fmt.Sprintf(`{"session":%q,"name":"far","text":"waits for input"}`, id)
	p.do(p.page.Chromium(ctx, "ServiceWorker.enable", map[string]any{}))
	deliver := func() {
		p.do(p.page.Chromium(ctx, "ServiceWorker.deliverPushMessage", map[string]any{
			"origin": origin, "registrationId": "0", "data": message,
		}))
	}
	deliver()
	p.do(p.page.Navigate(ctx, page+"#o="+url.QueryEscape(id)))
	p.awaitNotice("far: waits for input")
	p.await(`(?m)^ask$`)
	p.do(p.page.Eval(ctx, `navigator.serviceWorker.getRegistration().then((r) => r.getNotifications())
		.then((shown) => shown.forEach((n) => n.close()))`, nil))
	deliver()
	p.click("#sessions")
	p.click("#notify")
	p.reloaded("Notify me")
	if shown := p.notices(); len(shown) > 0 || eval[bool](p, `localStorage.getItem("subscribed") !== null`) {
		t.Errorf("a person who sees the page is told %q", shown)
	}
}
