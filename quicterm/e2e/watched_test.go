//go:build linux || darwin

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// A scraper gets the metrics of a daemon.
type scraper struct {
	t    *testing.T
	http http.Client
}

func scrape(t *testing.T, socket string) *scraper {
	s := &scraper{t: t}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	s.http = http.Client{Transport: transport, Timeout: rig.Patience}
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

var sample = regexp.MustCompile(`^(quicterm_\w+(?:{\w+="[^"]*"})?) (\S+)$`)

// get returns all samples by their name and label.
func (s *scraper) get() (map[string]float64, error) {
	answer, err := s.http.Get("http://qtd/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %w: %s", answer.Status, err, text)
	}
	all := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("line %q", line)
		}
		if all[m[1]], err = strconv.ParseFloat(m[2], 64); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// await scrapes until a sample is at least so much.
func (s *scraper) await(name string, least float64) {
	s.t.Helper()
	for until := time.Now().Add(rig.Patience); ; time.Sleep(20 * time.Millisecond) {
		all, err := s.get()
		if err != nil {
			s.t.Fatal(err)
		}
		if all[name] >= least {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("%s is %v, want %v, in\n%v", name, all[name], least, all)
		}
	}
}

// Metrics are scraped while a session roams, and tell of it. Counters never fall.
func TestMetrics(t *testing.T) {
	h := newHost(t)
	socket := h.Path("metrics.sock")
	h.Settings["metrics"] = fmt.Sprintf("%q", "unix:"+socket)
	h.Start()
	h.Log.Await(t, 0, regexp.MustCompile("metrics are served"))
	s := scrape(t, socket)
	p := h.Proxy(netem.Config{})
	x := h.Shell(p.Addr(), "-s", "work", "--predict", "never")
	s.await(`quicterm_sessions{state="attached"}`, 1)

	roamed := make(chan struct{})
	var wg sync.WaitGroup
	scrapes := 0
	wg.Go(func() {
		other := scrape(t, socket)
		var before map[string]float64
		for done := false; !done; scrapes++ {
			time.Sleep(5 * time.Millisecond) // the session has the processor too
			select {
			case <-roamed:
				done = true
			default:
			}
			all, err := other.get()
			if err != nil {
				t.Error(err)
				return
			}
			for name, v := range all {
				if regexp.MustCompile(`_total|_bucket|_count`).MatchString(name) && v < before[name] {
					t.Errorf("%s falls from %v to %v", name, before[name], v)
				}
			}
			before = all
		}
	})
	p.Set(netem.Config{Down: true})
	x.Send("echo ty''ped\r")
	s.await(`quicterm_sessions{state="attached"}`, 1) // the path is silent: the client has not left
	x.Expect(`reconnecting`)
	p.Set(netem.Config{})
	x.Expect("typed")
	close(roamed)
	wg.Wait()
	t.Logf("%d scrapes", scrapes)
	processes := []string{"monitor"}
	if os.Geteuid() == 0 {
		processes = append(processes, "network")
	}
	for _, process := range processes {
		s.await(fmt.Sprintf("quicterm_open_descriptors{process=%q}", process), 5)
		s.await(fmt.Sprintf("quicterm_cpu_seconds_total{process=%q}", process), 0.001)
	}
	for name, least := range map[string]float64{
		`quicterm_sessions{state="attached"}`: 1, `quicterm_attachments`: 1, `quicterm_carriers{kind="quic"}`: 1,
		`quicterm_logins_total{proof="key"}`: 1,
		`quicterm_packets_sent_total`:        1, `quicterm_ring_bytes`: 1, `quicterm_holders{version="same"}`: 1,
	} {
		s.await(name, least)
	}
	x.Send("exit\r")
	x.Exit()
	s.await("quicterm_sessions_ended_total", 1)
}

// qtd status shows the sessions and their clients, and settings are read again. A daemon that drains starts no other sessions, and
// an operator sees when none is left.
func TestOperate(t *testing.T) {
	h := newHost(t)
	h.Start()
	x := h.Shell(h.Addr, "-s", "work")
	qtd := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(filepath.Join(bin, "qtd"), append(args, "--config", h.Path("qtd.toml"))...).CombinedOutput()
		if err != nil {
			t.Fatalf("qtd %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	var status struct {
		Software string
		Sessions []struct {
			Name, Account, State, Holder string
			Clients                      []struct{ Client, Kind string }
		}
	}
	settled := func() bool { // on a busy machine, TCP may win the login
		status.Sessions = nil
		if err := json.Unmarshal([]byte(qtd("status", "--json")), &status); err != nil {
			t.Fatal(err)
		}
		return len(status.Sessions) == 1 && len(status.Sessions[0].Clients) == 1 && status.Sessions[0].Clients[0].Kind == "quic"
	}
	for until := time.Now().Add(rig.Patience + 15*time.Second); !settled(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("got %+v", status)
		}
	}
	if one := status.Sessions[0]; one.Name != "work" || one.Account != accountName(t) || one.State != "attached" || one.Holder != status.Software ||
		!strings.HasPrefix(one.Clients[0].Client, one.Account+"@127.0.0.1:") {
		t.Errorf("got %+v", one)
	}
	if text := qtd("status"); !strings.Contains(text, "\n1 session, 1 client, ") {
		t.Errorf("got\n%s", text)
	}

	// SIGHUP reads the settings again. A mistake in them changes nothing.
	right := h.Read("qtd.toml")
	hangup := func(settings, logged string) {
		t.Helper()
		from := h.Log.Len()
		h.Write("qtd.toml", settings)
		h.Daemon.Process.Signal(syscall.SIGHUP)
		h.Log.Await(t, from, regexp.MustCompile(logged))
	}
	hangup(strings.Replace(right, `detached_ttl = "10m"`, `detached_ttl = "11m"`, 1), "event=reload settings=detached_ttl\n")
	hangup("detached_ttl = 11\n", `the settings stay as they are" error="?.*is not a duration`)
	hangup(right, "event=reload settings=detached_ttl\n")

	qtd("drain")
	if out, err := h.QT("connect", "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "starts no new sessions") {
		t.Errorf("while the daemon drains, a new session: %v, %s", err, out)
	}
	if text := qtd("status"); !strings.Contains(text, ", draining\n") {
		t.Errorf("got\n%s", text)
	}
	wait := exec.Command(filepath.Join(bin, "qtd"), "drain", "--wait", "--config", h.Path("qtd.toml"))
	said := new(rig.Output)
	wait.Stderr = said
	if err := wait.Start(); err != nil {
		t.Fatal(err)
	}
	said.Await(t, 0, regexp.MustCompile("1 session left\n"))
	x.Run("echo goes ''on", "goes on")
	x.Send("exit\r")
	x.Exit()
	if err := wait.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	qtd("drain", "--off")
	if out, err := h.QT("connect", "true").CombinedOutput(); err != nil {
		t.Errorf("when it does not drain any more: %v, %s", err, out)
	}
}
