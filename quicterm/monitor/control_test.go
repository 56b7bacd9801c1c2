//go:build linux || darwin

package monitor

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

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
		h.setHolders(endless{bad})
		h.server.follow(wire.SessionID{1}, &followed{uid: h.server.self.UID})
		for range 3 {
			h.measure()
			time.Sleep(time.Minute)
		}
		n, limit := h.measure(), uint64(h.settings.BufferSize.Bytes)
		for series, want := range map[string]float64{
			`quicterm_sessions{state="attached"}`: 0, `quicterm_sessions{state="detached"}`: 1, "quicterm_sessions_silent": 2,
			`quicterm_holders{version="same"}`: 1, `quicterm_holders{version="other"}`: 1,
			"quicterm_gaps_total": maxCount, "quicterm_duplicates_total": maxCount,
		} {
			if n[series] != want {
				t.Errorf("%s is %v, want %v", series, n[series], want)
			}
		}
		for _, series := range []string{"quicterm_ring_bytes", "quicterm_ring_limit_bytes", "quicterm_output_bytes"} {
			if bytes := n[series]; bytes <= 0 || bytes > float64(2*limit) {
				t.Errorf("%v bytes of two sessions, want at most %d", bytes, 2*limit)
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

// An endless has sessions that do not end.
type endless struct{ *hostile }

func (endless) Await(ctx context.Context, _ uint32, _ wire.SessionID) (wire.Message, error) {
	<-ctx.Done()
	return wire.Message{}, ctx.Err()
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
		if known := h.server.census.followed; len(known) != 1 || known[good.ID] == nil {
			t.Errorf("%d sessions are remembered, want the one that was started", len(known))
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
			h.server.Measure(ended)
		}()
		synctest.Wait()
		end()
		if status := h.server.Status(context.Background()); len(status.Sessions) != 1 || status.Silent != 1 {
			t.Errorf("the status is %+v", status)
		}
		<-done
		if n := h.measure(); n["quicterm_sessions_silent"] != 1 ||
			n[`quicterm_sessions{state="attached"}`] != 0 || n[`quicterm_sessions{state="detached"}`] != 1 {
			t.Errorf("got %+v", n)
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
	var network privsep.Network = idle{}
	s.network.Store(&network)
	go func() { done <- s.serveMetrics(ctx) }()
	log.await(t, "metrics are not served", 1)
	l.Close()
	log.await(t, "metrics are served", 1)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// measure returns the numbers of the moment.
func (h *host) measure() privsep.Numbers {
	h.t.Helper()
	n, err := h.server.Measure(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return *n
}

// After the end of a daemon no account is asked.
func TestNoQuestionAfterEnd(t *testing.T) {
	settings := configs.DefaultServer()
	settings.StateDir = t.TempDir()
	s, err := New(Config{Settings: settings, Holders: holdertest.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	answers, silent := askAccounts(t.Context(), s.Sessions, askTime, []uint32{1}, func(context.Context, uint32) (int, error) {
		t.Error("an account is asked after the end")
		return 0, nil
	})
	if len(answers) != 0 || silent != 1 {
		t.Errorf("got %v, and %d without an answer", answers, silent)
	}
	s.finish()
}
