//go:build linux || darwin

package server

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/prometheus"
)

// Values of labels.
const (
	refusedBusy      = "busy"      // there were too many connections without a login
	refusedRate      = "rate"      // there were too many attempts
	refusedLogin     = "login"     // nothing was proven
	refusedResume    = "resume"    // the holder denied it, or there is no such session
	refusedWithdrawn = "withdrawn" // what let the client in does so no more
	refusedSession   = "session"   // a client that is logged in gets no session
	refusedDraining  = "draining"  // the same, because the daemon drains
	refusedProtocol  = "protocol"  // the client did something else than the protocol has

	proofKey = "key"
)

// counts are the metrics of a daemon.
type counts struct {
	*prometheus.Set
	measuring sync.Mutex // held while numbers are asked for and written: none of them goes back
}

func newCounts(begun time.Time, software string) *counts {
	_, version, _ := strings.Cut(software, " ")
	c := &counts{Set: prometheus.New(slices.Concat([]prometheus.Metric{
		gauge("quicterm_start_time_seconds", "When the daemon was started, Unix time."),
		gauge("quicterm_build_info", "1, with the version of the daemon.", "version", version),
	}, all)...)}
	c.Put("quicterm_start_time_seconds", float64(begun.Unix()))
	c.Put(prometheus.Series("quicterm_build_info", "version", version), 1)
	return c
}

// gauge returns a metric that is set, perhaps with a label and its values, and counter one that only grows.
func gauge(name, help string, label ...string) prometheus.Metric {
	return labelled(prometheus.Metric{Name: name, Kind: "gauge", Help: help}, label)
}

func counter(name, help string, label ...string) prometheus.Metric {
	return labelled(prometheus.Metric{Name: name, Kind: "counter", Help: help}, label)
}

func labelled(m prometheus.Metric, label []string) prometheus.Metric {
	if len(label) > 0 {
		m.Label, m.Values = label[0], label[1:]
	}
	return m
}

// all are the metrics whose labels do not depend on the daemon. The monitor has the numbers of the sessions and grants.
var all = []prometheus.Metric{
	gauge("quicterm_draining", "1 if the daemon starts no new sessions."),
	gauge("quicterm_memory_bytes", "Memory that the daemon has from the system."),
	gauge("quicterm_goroutines", "Goroutines of the daemon."),
	counter("quicterm_cpu_seconds_total",
		"CPU time of the daemon's processes; network is 0 if there is no such process.", "process", "monitor", "network"),
	gauge("quicterm_open_descriptors", "Descriptors that the daemon's processes have open; the same.",
		"process", "monitor", "network"),

	gauge("quicterm_sessions", "Sessions by state.", "state", "attached", "detached", "exited"),
	gauge("quicterm_sessions_silent", "Sessions that did not answer, of which the other numbers know nothing."),
	gauge("quicterm_holders", "Sessions by the version that holds them: the daemon's, or another.",
		"version", "same", "other"),
	counter("quicterm_sessions_started_total", "Sessions that were started."),
	counter("quicterm_sessions_ended_total", "Sessions that are over."),
	gauge("quicterm_output_bytes", "Memory that the output and screens of all sessions take."),
	gauge("quicterm_ring_bytes", "Memory that the rings of all sessions take."),
	gauge("quicterm_ring_limit_bytes", "Memory that they may take."),

	gauge("quicterm_connections", "Connections of any kind, also before their login."),
	gauge("quicterm_attachments", "Clients that are connected to a session."),
	gauge("quicterm_carriers", "Connections that clients have to a session, by kind.",
		"kind", kindQUIC, kindTCP, kindWeb, kindSSH),
	counter("quicterm_carriers_total", "Connections that clients have had to a session, by kind.",
		"kind", kindQUIC, kindTCP, kindWeb, kindSSH),
	counter("quicterm_web_pages_total", "Connections to the page that have ended and became no WebSocket."),
	counter("quicterm_logins_total", "Logins by proof.", "proof", proofKey, privsep.ProofToken, privsep.ProofSSH),
	counter("quicterm_grants_total", "Grants to processes of this machine."),
	counter("quicterm_attaches_total", "Clients that have attached to a session, new or not."),
	counter("quicterm_resumes_total", "Further connections by which clients have continued."),
	counter("quicterm_moves_total", "Changes of the address of a client that was connected."),
	counter("quicterm_refusals_total", "What was refused, by reason.", "reason",
		refusedBusy, refusedRate, refusedLogin, refusedResume, refusedWithdrawn, refusedSession, refusedDraining,
		"grant", refusedProtocol),
	counter("quicterm_withdrawn_total", "Connections that were ended because what let the client in does so no more."),

	{
		Name:   "quicterm_reconnect_seconds",
		Help:   "For how long a client that resumes had not been heard. An idle one is heard every 5 to 25 s.",
		Bounds: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 28800},
	},
	{
		Name: "quicterm_rtt_seconds", Help: "Round trips of connections over QUIC and TCP, each looked at every 15 s.",
		Bounds: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2},
	},
	counter("quicterm_packets_sent_total", "QUIC packets sent to clients with a session."),
	counter("quicterm_packets_lost_total", "Those of them that were lost."),

	counter("quicterm_gaps_total", "How often output had left a ring before a client had it."),
	counter("quicterm_duplicates_total", "Frames of input that came again, and were dropped."),
	counter("quicterm_crc_faults_total", "Datagrams and streams with a bad CRC, or with bytes that are no frame."),
}

// count counts an event, and countOf one with a label.
func (c *counts) count(name string)                 { c.Add(name, 1) }
func (c *counts) countOf(name, label, value string) { c.Add(prometheus.Series(name, label, value), 1) }

func (c *counts) refused(err error) {
	c.countOf("quicterm_refusals_total", "reason", refusalReason(err))
}

// sessionRefusal returns the reason of a client that is logged in and gets no session.
func sessionRefusal(err error) string {
	if errors.Is(err, privsep.ErrDraining) {
		return refusedDraining
	}
	return refusedSession
}

func refusalReason(err error) string {
	switch {
	case errors.Is(err, errBusy):
		return refusedBusy
	case errors.Is(err, errTooOften):
		return refusedRate
	case errors.Is(err, errNotAccepted), errors.Is(err, errNoSession):
		return refusedResume
	case errors.Is(err, errDenied):
		return refusedLogin
	case errors.As(err, new(*privsep.Withdrawn)):
		return refusedWithdrawn
	}
	return refusedProtocol
}

// measure sets the numbers that are those of the moment, and those of the monitor.
func (s *Server) measure(n *privsep.Numbers) {
	numbers := maps.Clone(*n)
	clients, byKind := s.attachments.count()
	for _, kind := range []string{kindQUIC, kindTCP, kindWeb, kindSSH} {
		numbers[prometheus.Series("quicterm_carriers", "kind", kind)] = float64(byKind[kind])
	}
	numbers["quicterm_attachments"] = float64(clients)
	numbers["quicterm_connections"] = float64(s.connections.Load())
	numbers["quicterm_goroutines"] = float64(runtime.NumGoroutine())
	numbers["quicterm_draining"] = 0
	if s.state.Load().Draining {
		numbers["quicterm_draining"] = 1
	}
	if s.setup.Apart {
		usage := privsep.UsageOfProcess()
		numbers["quicterm_memory_bytes"] += float64(memory.OfProcess())
		numbers[`quicterm_cpu_seconds_total{process="network"}`] = usage.CPU.Seconds()
		numbers[`quicterm_open_descriptors{process="network"}`] = float64(usage.Descriptors)
	}
	for series, number := range numbers {
		s.counts.Put(series, number)
	}
}
