//go:build linux || darwin

package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/memory"
	"github.com/quicterm/quicterm/quicterm/monitor/ports"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/prometheus"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// ControlSocket is the name of the socket at which the daemon's own account asks for its status, over HTTP:
//
//	GET  /status           a Status as JSON
//	POST /drain?on=true    starts no new sessions; on=false ends that
//	POST /end              ends sessions: id, up to MaxEnded times, and reason; answers an array of Ended
//	POST /revoke           takes access: account, or key as the hexadecimal SHA-256 of one; answers a wire.Revoked
//	GET  /metrics          as at the address of the setting metrics
//	GET  /healthz          the same
const ControlSocket = "control.sock"

// A Status is what an operator sees of a daemon.
type Status struct {
	Software    string          `json:"software"`
	PID         int             `json:"pid"`
	Started     time.Time       `json:"started"`
	Draining    bool            `json:"draining"`
	Address     netip.AddrPort  `json:"address"` // at which programs of this machine reach it
	Memory      uint64          `json:"memory_bytes"`
	Connections int64           `json:"connections"` // also before their login
	Silent      int             `json:"silent"`      // sessions that did not answer
	Sessions    []SessionStatus `json:"sessions"`
}

// A SessionStatus is what an operator sees of a session.
type SessionStatus struct {
	ID      string                 `json:"id"`
	Name    string                 `json:"name"`
	UID     uint32                 `json:"uid"`
	Account string                 `json:"account,omitempty"` // empty if no account has the uid
	State   string                 `json:"state"`
	Since   time.Time              `json:"since"` // of the state
	Created time.Time              `json:"created"`
	Holder  string                 `json:"holder"`           // name and version
	Memory  uint64                 `json:"memory_bytes"`     // of the output
	RTT     float64                `json:"rtt_ms,omitempty"` // end to end
	Clients []privsep.ClientStatus `json:"clients"`
}

// Status returns what an operator sees of the daemon. It blocks for seconds if holders do not answer.
func (s *Monitor) Status(ctx context.Context) *Status {
	sessions, silent := s.inspectAll(ctx)
	status := &Status{
		Software: s.software, PID: os.Getpid(), Started: s.begun.UTC(), Draining: s.draining.Load(),
		Memory: memory.OfProcess(), Silent: silent, Sessions: []SessionStatus{},
	}
	if s.address != nil {
		status.Address = s.address()
	}
	bySession := make(map[wire.SessionID][]privsep.ClientStatus)
	if clients, err := s.clients(ctx); err != nil {
		s.log.Warn("the clients are not known", "error", err)
	} else {
		status.Connections, status.Memory = clients.Connections, status.Memory+clients.Memory
		for _, one := range clients.Sessions {
			bySession[one.ID] = one.Clients
		}
	}
	for _, one := range sessions {
		r := one.report
		session := SessionStatus{
			ID: one.id.String(), Name: r.Name, UID: one.uid, State: stateName(r.Phase), Holder: r.Software,
			Since: time.Unix(r.Since, 0).UTC(), Created: time.Unix(r.Created, 0).UTC(),
			Memory: r.Memory, RTT: Milliseconds(r.RTT), Clients: []privsep.ClientStatus{},
		}
		if a, err := s.names.LookupID(ctx, one.uid); err == nil {
			session.Account = a.Name
		}
		session.Clients = append(session.Clients, bySession[one.id]...)
		status.Sessions = append(status.Sessions, session)
	}
	slices.SortFunc(status.Sessions, func(a, b SessionStatus) int {
		return strings.Compare(a.Account+"\x00"+a.Name+a.ID, b.Account+"\x00"+b.Name+b.ID)
	})
	return status
}

// Milliseconds returns a time in the unit of a status.
func Milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

func stateName(p wire.Phase) string {
	switch p {
	case wire.PhaseAttached:
		return "attached"
	case wire.PhaseDetached:
		return "detached"
	case wire.PhaseLost:
		return "lost"
	}
	return "exited"
}

// Drain makes the daemon start no new sessions, or start them again. Sessions continue, and clients
// come back to them.
func (s *Monitor) Drain(on bool) {
	if s.draining.Swap(on) == on {
		return
	}
	s.update()
	text := "draining: no new sessions are started"
	if !on {
		text = "the draining has ended: new sessions are started"
	}
	s.log.Info(text, "event", "drain")
}

// notReady returns why the daemon takes no new sessions, or nothing.
func (s *Monitor) notReady(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, promptTime)
	defer cancel()
	if _, err := s.clients(ctx); err != nil {
		return "clients are not served: " + err.Error()
	}
	return s.state().NotReady()
}

// controlling returns what answers the daemon's account.
func (s *Monitor) controlling() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		prometheus.ServeMetrics(w, r, (*s.network.Load()).Metrics)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		prometheus.ServeHealth(w, s.notReady(r.Context()))
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.Status(r.Context()))
	})
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, r *http.Request) {
		switch r.FormValue("on") {
		case "true":
			s.Drain(true)
		case "false":
			s.Drain(false)
		default:
			http.Error(w, "on must be true or false", http.StatusBadRequest)
		}
	})
	mux.HandleFunc("POST /end", s.operate(func(ctx context.Context, by operator, r *http.Request) (any, error) {
		if len(r.Form["id"]) > MaxEnded {
			return nil, fmt.Errorf("name %d sessions at most", MaxEnded)
		}
		return s.end(ctx, by, r.Form["id"], r.FormValue("reason")), nil
	}))
	mux.HandleFunc("POST /revoke", s.operate(func(ctx context.Context, by operator, r *http.Request) (any, error) {
		key, err := hex.DecodeString(r.FormValue("key"))
		account := r.FormValue("account")
		if err != nil || (account == "") == (len(key) == 0) || account == "" && len(key) != sha256.Size {
			return nil, errors.New("name one account, or one key")
		}
		return s.revokeAccess(ctx, by, account, key)
	}))
	return mux
}

func (s *Monitor) listenControl() (net.Listener, error) {
	dir, err := s.grantDir()
	if err != nil {
		return nil, err
	}
	l, err := ports.ListenSocket(filepath.Join(dir, ControlSocket))
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return controlListener{l, s.self.UID}, nil
}

// serveMetrics serves metrics at the address of the settings until ctx ends.
func (s *Monitor) serveMetrics(ctx context.Context) error {
	return s.serveHTTP(ctx, "metrics are", s.settings().Metrics, privsep.ForMetrics)
}

// serveWeb serves the page at the address of the settings until ctx ends.
func (s *Monitor) serveWeb(ctx context.Context) error {
	return s.serveHTTP(ctx, "the page is", strings.TrimPrefix(s.settings().Web, "off"), privsep.ForWeb)
}

// page returns the URL of the page, by the first name in its certificate, or "" if that has none.
func (s *Monitor) page() string {
	_, port, err := net.SplitHostPort(s.settings().Web)
	name := s.web.Name()
	switch {
	case err != nil || name == "" || s.granted:
		return ""
	case port == "443":
		return "https://" + name + "/"
	}
	return "https://" + net.JoinHostPort(name, port) + "/"
}

// readWebCertificate reads the page's certificate and key when they have changed, until ctx ends.
func (s *Monitor) readWebCertificate(ctx context.Context) error {
	if s.web == nil {
		<-ctx.Done()
		return nil
	}
	return every(ctx, certificatePause, func() bool {
		if s.web.Read() {
			s.update()
		}
		return false
	})
}

// serveHTTP serves something at an address, unless that is empty, until ctx ends. Any account can take a port: that ends
// nothing, and the address is tried again.
func (s *Monitor) serveHTTP(ctx context.Context, subject, address string, purpose privsep.Purpose) error {
	warned := false
	for address != "" && !s.granted && ctx.Err() == nil {
		l, err := ports.ListenHTTP(address)
		if err == nil {
			s.log.Info(subject+" served", "address", address)
			err = (*s.network.Load()).Serve(ctx, privsep.Listener{Purpose: purpose, Socket: l.(privsep.Socket)})
			warned = false
		}
		if err != nil && !warned {
			s.log.Error(subject+" not served, and the address is tried again", "address", address, "error", err)
			warned = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
	<-ctx.Done()
	return nil
}
