//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/prometheus"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Each metric that the dashboard names exists, and the dashboard shows each metric that exists.
func TestDashboard(t *testing.T) {
	dashboard, err := os.ReadFile("../../configs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(dashboard) {
		t.Fatal("the dashboard is no JSON")
	}
	var text bytes.Buffer
	if err := newCounts(time.Now(), "qtd 1.2").Write(&text); err != nil {
		t.Fatal(err)
	}
	var have, named []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`).FindAllStringSubmatch(text.String(), -1) {
		name := m[1]
		if m[2] == "histogram" {
			name += "_bucket"
		}
		have = append(have, name)
	}
	for _, name := range regexp.MustCompile(`quicterm_\w+`).FindAll(dashboard, -1) {
		named = append(named, string(name))
	}
	slices.Sort(have)
	slices.Sort(named)
	if named = slices.Compact(named); !slices.Equal(have, named) {
		t.Errorf("the dashboard shows\n%q, the daemon has\n%q", named, have)
	}
}

// What a client does is in the log, and in numbers whose labels no peer can choose.
func TestWatched(t *testing.T) {
	onHost(t, func(h *host) {
		a := h.attach()
		h.log.await(t, "event=detach ", 1)
		c, _, _ := h.dialFrom(stranger, quic.Dial, false)
		h.resume(c, a, 1, nil)
		h.want("resume", c, wire.TypeResumed)
		h.log.await(t, "event=resume", 1)
		h.log.await(t, `msg="client continues" client=`+selfName(t)+"@"+stranger.String(), 1)
		if status := h.server.Status(context.Background()); len(status.Sessions) != 1 || status.Sessions[0].Name != a.Name ||
			len(status.Sessions[0].Clients) != 1 || status.Sessions[0].Clients[0].Kind != kindQUIC ||
			!strings.Contains(status.Sessions[0].Clients[0].Client, stranger.String()) {
			t.Errorf("the status is %+v", status)
		}
		h.holders.Kill()
		c.Close()
		time.Sleep(time.Hour) // for which a killed session waits for its client
		h.log.await(t, "event=end status=7 reason=\"killed by test\"", 1)
		c, _, _ = h.dial(quic.Dial, false)
		h.send(c, &wire.Hello{User: "mallory\x1b"}, &wire.Token{Token: []byte("guessed")})
		h.want("login", c, wire.TypeDenied)
		h.log.await(t, "account=mallory? event=refuse", 1)
		for _, line := range []string{
			`account=` + selfName(t) + ` uid=`, `proof=token event=login`, `proof=token event=start session=1 id=`,
			`role=writer event=attach`,
			`role=writer event=detach reason="the client has closed the connection"`,
		} {
			h.log.await(t, line, 1)
		}
		text := h.metrics()
		for _, line := range []string{
			`quicterm_logins_total{proof="token"} 1`, `quicterm_attaches_total 1`, `quicterm_resumes_total 1`,
			`quicterm_moves_total 1`,
			`quicterm_reconnect_seconds_count 1`, `quicterm_sessions_started_total 1`, `quicterm_sessions_ended_total 1`,
			`quicterm_carriers_total{kind="quic"} 2`, `quicterm_refusals_total{reason="login"} 1`,
			`quicterm_sessions{state="attached"} 0`,
		} {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("no line %s in\n%s", line, text)
			}
		}
		for _, line := range []string{`quicterm_build_info{version="1.2"} 1`,
			`quicterm_open_descriptors{process="monitor"} [1-9]\d*`,
			`quicterm_cpu_seconds_total{process="monitor"} [0-9.e-]+`} {
			if !regexp.MustCompile("(?m)^" + line + "$").MatchString(text) {
				t.Errorf("no line %s in\n%s", line, text)
			}
		}
		var fresh bytes.Buffer
		newCounts(time.Now(), "qtd 1.2").Write(&fresh)
		if got, want := strings.Count(text, "\n"), bytes.Count(fresh.Bytes(), []byte("\n")); got != want {
			t.Errorf("%d lines, %d before there was a client", got, want)
		}
	})
}

// metrics returns what Prometheus gets.
func (h *host) metrics() string {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.server.watching().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != prometheus.ContentType {
		h.t.Errorf("status %d, headers %v", w.Code, w.Header())
	}
	return w.Body.String()
}

// A daemon that drains starts no sessions, and lets clients come back to those that there are.
func TestDrain(t *testing.T) {
	onHost(t, func(h *host) {
		a := h.attach()
		health := func(want int) {
			t.Helper()
			w := httptest.NewRecorder()
			h.server.watching().ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
			if w.Code != want {
				t.Errorf("health %d, want %d", w.Code, want)
			}
		}
		health(200)
		h.server.Drain(true)
		health(503)
		ask := func(request *wire.Attach, want wire.Type) {
			t.Helper()
			c, _, _ := h.dial(quic.Dial, false)
			defer c.Close()
			h.send(c, h.login(request)...)
			h.want("attach", c, want)
		}
		ask(&wire.Attach{PTY: true}, wire.TypeError)
		ask(&wire.Attach{PTY: true, Mode: wire.ModeAttachOrCreate, Session: a.Name}, wire.TypeAttached)
		ask(&wire.Attach{PTY: true, Mode: wire.ModeAttach, Session: a.Name}, wire.TypeAttached)
		if text := h.metrics(); !strings.Contains(text, "\nquicterm_draining 1\n") ||
			!strings.Contains(text, "\nquicterm_refusals_total{reason=\"draining\"} 1\n") {
			t.Errorf("got\n%s", text)
		}
		h.server.Drain(false)
		health(200)
		ask(&wire.Attach{PTY: true}, wire.TypeAttached)
	})
}

// Who asks without end costs the sessions a question a second.
func TestMetricsAreAskedRarely(t *testing.T) {
	onHost(t, func(h *host) {
		h.attach()
		before := h.holders.Asks()
		for range 100 {
			h.metrics()
		}
		if n := h.holders.Asks() - before; n != 1 {
			t.Errorf("%d questions for 100 scrapes at once, want 1", n)
		}
	})
}
