//go:build linux || darwin

package server

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/memory"
	counting "github.com/quicterm/quicterm/quicterm/monitor/metrics"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
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
	refusedGrant     = "grant"     // a process of this machine gets no grant
	refusedProtocol  = "protocol"  // the client did something else than the protocol has

	proofKey = "key"

	processMonitor, processNetwork = "monitor", "network"

	versionSame, versionOther = "same", "other"
)

// counts are the metrics of a daemon.
type counts struct {
	set counting.Set

	measuring sync.Mutex
	numbers   privsep.Numbers // that were added

	draining, memory, goroutines, connections *counting.Value
	cpu, descriptors                          *counting.Values

	sessions, holders, carriers  *counting.Values
	attachments, silent          *counting.Value
	ringBytes, ringLimit, output *counting.Value

	logins, accepted, refusals                  *counting.Values
	started, ended, attaches, resumes, moves    *counting.Value
	gaps, duplicates, corrupted                 *counting.Value
	packetsSent, packetsLost, grants, withdrawn *counting.Value

	reconnect, rtt *counting.Histogram
}

func newCounts(begun time.Time, software string) *counts {
	c := new(counts)
	s := &c.set
	s.Gauge("quicterm_start_time_seconds", "When the daemon was started, Unix time.").Set(float64(begun.Unix()))
	_, version, _ := strings.Cut(software, " ")
	s.Gauges("quicterm_build_info", "1, with the version of the daemon.", "version", version).Of(version).Set(1)
	c.draining = s.Gauge("quicterm_draining", "1 if the daemon starts no new sessions.")
	c.memory = s.Gauge("quicterm_memory_bytes", "Memory that the daemon has from the system.")
	c.goroutines = s.Gauge("quicterm_goroutines", "Goroutines of the daemon.")
	halves := []string{processMonitor, processNetwork}
	c.cpu = s.Totals("quicterm_cpu_seconds_total",
		"CPU time of the daemon's processes; network is 0 if there is no such process.", "process", halves...)
	c.descriptors = s.Gauges("quicterm_open_descriptors", "Descriptors that the daemon's processes have open; the same.",
		"process", halves...)

	c.sessions = s.Gauges("quicterm_sessions", "Sessions by state.", "state", "attached", "detached", "exited")
	c.silent = s.Gauge("quicterm_sessions_silent",
		"Sessions that did not answer, of which the other numbers know nothing.")
	c.holders = s.Gauges("quicterm_holders", "Sessions by the version that holds them: the daemon's, or another.",
		"version", versionSame, versionOther)
	c.started = s.Counter("quicterm_sessions_started_total", "Sessions that were started.")
	c.ended = s.Counter("quicterm_sessions_ended_total", "Sessions that are over.")
	c.output = s.Gauge("quicterm_output_bytes", "Memory that the output and screens of all sessions take.")
	c.ringBytes = s.Gauge("quicterm_ring_bytes", "Memory that the rings of all sessions take.")
	c.ringLimit = s.Gauge("quicterm_ring_limit_bytes", "Memory that they may take.")

	c.connections = s.Gauge("quicterm_connections", "Connections of any kind, also before their login.")
	c.attachments = s.Gauge("quicterm_attachments", "Clients that are connected to a session.")
	c.carriers = s.Gauges("quicterm_carriers", "Connections that clients have to a session, by kind.", "kind", kinds...)
	c.accepted = s.Counters("quicterm_carriers_total", "Connections that clients have had to a session, by kind.", "kind",
		kinds...)
	c.logins = s.Counters("quicterm_logins_total", "Logins by proof.", "proof", proofKey, privsep.ProofToken,
		privsep.ProofSSH)
	c.grants = s.Counter("quicterm_grants_total", "Grants to processes of this machine.")
	c.attaches = s.Counter("quicterm_attaches_total", "Clients that have attached to a session, new or not.")
	c.resumes = s.Counter("quicterm_resumes_total", "Further connections by which clients have continued.")
	c.moves = s.Counter("quicterm_moves_total", "Changes of the address of a client that was connected.")
	c.refusals = s.Counters("quicterm_refusals_total", "What was refused, by reason.", "reason",
		refusedBusy, refusedRate, refusedLogin, refusedResume, refusedWithdrawn, refusedSession, refusedDraining,
		refusedGrant, refusedProtocol)
	c.withdrawn = s.Counter("quicterm_withdrawn_total",
		"Connections that were ended because what let the client in does so no more.")

	c.reconnect = s.Histogram("quicterm_reconnect_seconds",
		"For how long a client that resumes had not been heard. An idle one is heard every 5 to 25 s.",
		0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 28800)
	c.rtt = s.Histogram("quicterm_rtt_seconds", "Round trips of connections over QUIC and TCP, each looked at every 15 s.",
		0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
	c.packetsSent = s.Counter("quicterm_packets_sent_total", "QUIC packets sent to clients with a session.")
	c.packetsLost = s.Counter("quicterm_packets_lost_total", "Those of them that were lost.")

	c.gaps = s.Counter("quicterm_gaps_total", "How often output had left a ring before a client had it.")
	c.duplicates = s.Counter("quicterm_duplicates_total", "Frames of input that came again, and were dropped.")
	c.corrupted = s.Counter("quicterm_crc_faults_total",
		"Datagrams and streams with a bad CRC, or with bytes that are no frame.")
	return c
}

// refused counts a refusal.
func (c *counts) refused(err error) { c.refusals.Of(refusalReason(err)).Add(1) }

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

// use sets what a process of the daemon uses.
func (c *counts) use(process string, u privsep.Usage) {
	c.cpu.Of(process).Set(u.CPU.Seconds())
	c.descriptors.Of(process).Set(float64(u.Descriptors))
}

// measure sets the numbers that are those of the moment, and adds what the monitor has counted.
func (s *Server) measure(n *privsep.Numbers) {
	c := s.counts
	c.measuring.Lock()
	defer c.measuring.Unlock()
	before := c.numbers
	c.numbers = *n
	c.started.Add(n.Started - before.Started)
	c.ended.Add(n.Ended - before.Ended)
	c.gaps.Add(n.Gaps - before.Gaps)
	c.duplicates.Add(n.Duplicates - before.Duplicates)
	c.corrupted.Add(n.Corrupted - before.Corrupted)
	c.grants.Add(n.Grants - before.Grants)
	c.refusals.Of(refusedGrant).Add(n.Refused - before.Refused)

	c.sessions.Of("attached").Set(float64(n.Attached))
	c.sessions.Of("detached").Set(float64(n.Detached))
	c.sessions.Of("exited").Set(float64(n.Exited))
	c.silent.Set(float64(n.Silent))
	c.holders.Of(versionSame).Set(float64(n.Same))
	c.holders.Of(versionOther).Set(float64(n.Other))
	c.ringBytes.Set(float64(n.Ring))
	c.ringLimit.Set(float64(n.RingLimit))
	c.output.Set(float64(n.Output))
	attached, byKind := s.attachments.count()
	c.attachments.Set(float64(attached))
	for _, kind := range kinds {
		c.carriers.Of(kind).Set(float64(byKind[kind]))
	}
	c.connections.Set(float64(s.connections.Load()))
	total := memory.OfProcess()
	c.use(processMonitor, n.Usage)
	if s.setup.Apart {
		total += n.Memory
		c.use(processNetwork, privsep.UsageOfProcess())
	}
	c.memory.Set(float64(total))
	c.goroutines.Set(float64(runtime.NumGoroutine()))
	drains := 0.0
	if s.state.Load().Draining {
		drains = 1
	}
	c.draining.Set(drains)
}
