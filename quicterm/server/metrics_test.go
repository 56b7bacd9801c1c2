//go:build linux || darwin

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/metrics"
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
	if err := newCounts(time.Now()).set.Write(&text); err != nil {
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
		h.log.await(t, "event=detach client=", 1)
		c, _, _ := h.dialFrom(stranger, quic.Dial, false)
		h.resume(c, a, 1, nil)
		h.want("resume", c, wire.TypeResumed)
		who := "client=" + h.server.self.Name + "@" + stranger.String()
		h.log.await(t, "event=resume "+who, 1)
		if status := h.server.Status(context.Background()); len(status.Sessions) != 1 || status.Sessions[0].Name != a.Name ||
			len(status.Sessions[0].Clients) != 1 || status.Sessions[0].Clients[0].Kind != kindQUIC ||
			!strings.Contains(status.Sessions[0].Clients[0].Client, stranger.String()) {
			t.Errorf("the status is %+v", status)
		}
		h.holders.Kill()
		c.Close()
		time.Sleep(h.settings.ExitedTTL.Duration) // for which a killed session waits for its client
		h.log.await(t, "event=end status=7 reason=\"killed by test\"", 1)
		c, _, _ = h.dial(quic.Dial, false)
		h.send(c, &wire.Hello{User: "mallory\x1b"}, &wire.Token{Token: []byte("guessed")})
		h.want("login", c, wire.TypeDenied)
		h.log.await(t, "account=mallory? event=refuse", 1)
		for _, line := range []string{
			`event=login account=` + h.server.self.Name + ` uid=`, `event=start account=`, `event=attach client=`, `proof=token session=1 id=`,
		} {
			h.log.await(t, line, 1)
		}
		text := h.metrics()
		for _, line := range []string{
			`quicterm_logins_total{proof="token"} 1`, `quicterm_attaches_total 1`, `quicterm_resumes_total 1`, `quicterm_moves_total 1`,
			`quicterm_reconnect_seconds_count 1`, `quicterm_sessions_started_total 1`, `quicterm_sessions_ended_total 1`,
			`quicterm_carriers_total{kind="quic"} 2`, `quicterm_refusals_total{reason="login"} 1`, `quicterm_sessions{state="attached"} 0`,
		} {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("no line %s in\n%s", line, text)
			}
		}
		var fresh bytes.Buffer
		newCounts(time.Now()).set.Write(&fresh)
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
	if w.Code != 200 || w.Header().Get("Content-Type") != metrics.ContentType {
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

// A holder that claims any numbers changes no other metric, and makes no series. One that does not
// answer is counted, and the others are told.
func TestHostileReports(t *testing.T) {
	onHost(t, func(h *host) {
		good := h.attach()
		report, err := wire.New(&wire.Report{
			Software: `x"} 1` + "\nquicterm_gaps_total 7", Name: "liar", Phase: 77, Created: math.MaxInt64, Since: math.MinInt64,
			Memory: math.MaxUint64, Ring: math.MaxUint64, Capacity: math.MaxUint64, RTT: math.MinInt64,
			Gaps: math.MaxUint64, Duplicates: math.MaxUint64, Corrupted: math.MaxUint64,
		})
		if err != nil {
			t.Fatal(err)
		}
		bad := &hostile{Holders: h.holders, answers: make(map[wire.SessionID]func(context.Context) (wire.Message, error))}
		bad.answers[wire.SessionID{1}] = func(context.Context) (wire.Message, error) { return report, nil }
		bad.answers[wire.SessionID{2}] = func(ctx context.Context) (wire.Message, error) {
			<-ctx.Done()
			return wire.Message{}, ctx.Err()
		}
		bad.answers[wire.SessionID{3}] = func(context.Context) (wire.Message, error) {
			return wire.New(&wire.Error{Code: wire.CodeUnknown})
		}
		h.setHolders(bad)
		for range 3 {
			h.metrics()
			time.Sleep(time.Minute)
		}
		text := h.metrics()
		limit := float64(h.settings.BufferSize.Bytes)
		for _, line := range []string{
			`quicterm_sessions{state="attached"} 0`, `quicterm_sessions{state="detached"} 1`, `quicterm_sessions_silent 2`,
			`quicterm_holders{version="same"} 0`, `quicterm_gaps_total 4294967296`, `quicterm_duplicates_total 4294967296`,
		} {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("no line %s in\n%s", line, text)
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^quicterm_(ring|output)\w+ (\S+)$`).FindAllStringSubmatch(text, -1) {
			if v, err := strconv.ParseFloat(m[2], 64); err != nil || v > 2*limit {
				t.Errorf("%s, %v", m[0], err)
			}
		}
		if status := h.server.Status(context.Background()); status.Silent != 2 || len(status.Sessions) != 2 ||
			!slices.ContainsFunc(status.Sessions, func(s SessionStatus) bool { return s.ID == good.ID.String() }) {
			t.Errorf("the status is %+v", status)
		} else if _, err := json.Marshal(status); err != nil {
			t.Errorf("no operator gets the status: %v", err)
		}
	})
}

// An account that makes and removes sockets without end does not make the daemon remember them all.
func TestReportsOfRemovedSockets(t *testing.T) {
	onHost(t, func(h *host) {
		good := h.attach()
		report, err := wire.New(&wire.Report{Name: "liar", Gaps: 1})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		bad := &hostile{Holders: h.holders}
		h.setHolders(bad)
		for i := range 3 {
			bad.answers = make(map[wire.SessionID]func(context.Context) (wire.Message, error))
			for j := range 5 {
				bad.answers[wire.SessionID{byte(i), byte(j)}] = func(context.Context) (wire.Message, error) { return report, nil }
			}
			h.server.inspectAll(context.Background())
		}
		known := h.server.census.known[h.server.self.UID]
		if _, ok := known[good.ID]; len(known) != 6 || !ok {
			t.Errorf("%d sessions are remembered, want 6", len(known))
		}
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

// A request that ends at once changes no number for others, nor do two who ask at the same time.
func TestMetricsOfEndedRequest(t *testing.T) {
	onHost(t, func(h *host) {
		h.attach()
		synctest.Wait() // the daemon has asked the sessions that it has found
		slow := &hostile{Holders: h.holders, answers: make(map[wire.SessionID]func(context.Context) (wire.Message, error))}
		slow.answers[wire.SessionID{1}] = func(ctx context.Context) (wire.Message, error) {
			<-ctx.Done()
			return wire.Message{}, ctx.Err()
		}
		h.setHolders(slow)
		ended, end := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.server.watching().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil).WithContext(ended))
		}()
		synctest.Wait()
		end()
		if status := h.server.Status(context.Background()); len(status.Sessions) != 1 || status.Silent != 1 {
			t.Errorf("the status is %+v", status)
		}
		<-done
		if text := h.metrics(); !strings.Contains(text, "\nquicterm_sessions_silent 1\n") ||
			!strings.Contains(text, "\nquicterm_sessions{state=\"attached\"} 0\n") ||
			!strings.Contains(text, "\nquicterm_sessions{state=\"detached\"} 1\n") {
			t.Errorf("got\n%s", text)
		}
	})
}

// Another account's process that has the port ends nothing. The port is taken when it is free.
func TestMetricsPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log notebook
	settings := configs.DefaultServer()
	settings.StateDir, settings.Metrics = t.TempDir(), l.Addr().String()
	s, err := New(Config{Settings: settings, Holders: holdertest.New(nil), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.serveMetrics(ctx) }()
	log.await(t, "metrics are not served", 1)
	l.Close()
	log.await(t, "metrics are served", 1)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A server of metrics that ends waits for those who answer, and starts no more questions.
func TestHTTPEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answering, goOn, done := make(chan bool), make(chan bool), make(chan error, 1)
	var answered atomic.Bool
	go func() {
		done <- serveHTTP(ctx, l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(answering)
			<-goOn
			answered.Store(true)
		}))
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-answering
	cancel()
	c.Read(make([]byte, 1)) // the server has closed the connection
	close(goOn)
	if err := <-done; err != nil || !answered.Load() {
		t.Errorf("ended with %v, after the answer: %v", err, answered.Load())
	}

	settings := configs.DefaultServer()
	settings.StateDir = t.TempDir()
	s, err := New(Config{Settings: settings, Holders: holdertest.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	if s.census.begin(s, 1, func() { t.Error("an account is asked after the end") }) {
		t.Error("a question has begun after the end")
	}
	s.census.finish(s)
}

// The socket of metrics is for all, in a directory that only the daemon's account can write to: others
// could put a link in the place of the socket whose mode is changed.
func TestMetricsSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "metrics.sock")
	l, err := listenMetrics(configs.UnixPrefix + path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("got %v, %v", info, err)
	}
	l.Close()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if l, err := listenMetrics(configs.UnixPrefix + path); err == nil {
		l.Close()
		t.Error("it is made where others can write")
	}
}

// The control socket is for the daemon's account alone, also if an earlier daemon has left one.
// What is no socket is not removed.
func TestControlSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), ControlSocket)
	for range 2 {
		l, err := listenSocket(path)
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		defer l.Close()
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v", info.Mode(), err)
		}
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("kept"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if l, err := listenSocket(path); err == nil {
		l.Close()
		t.Error("a file has become a socket")
	}
}
