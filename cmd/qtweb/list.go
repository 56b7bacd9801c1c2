//go:build js

package main

import (
	"context"
	"errors"
	"time"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// listTimeout bounds how long the sessions are asked for: the page asks again.
const listTimeout = time.Minute

// list tells the page which sessions there are.
func (p *page) list(h *host) {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	infos, _, err := h.client.List(ctx)
	if err != nil {
		p.post("unlisted", map[string]any{"text": h.reason(err), "denied": errors.As(err, new(*client.DeniedError))})
		return
	}
	sessions := make([]any, len(infos))
	for i := range infos {
		sessions[i] = describe(&infos[i])
	}
	p.post("sessions", sessions)
}

// describe returns what the page shows of a session: as qt ls --json, with times in milliseconds.
func describe(i *wire.Info) map[string]any {
	clients := []any{}
	for _, m := range i.Members {
		clients = append(clients, m.Client)
	}
	session := map[string]any{
		"id": i.ID.String(), "name": i.Name, "state": i.Phase.String(), "since": milliseconds(i.Since),
		"pty": i.PTY, "command": i.Command, "clients": clients,
	}
	if i.Phase == wire.PhaseExited {
		session["status"] = i.Status
	}
	if a := i.Activity; a != nil {
		session["runs"], session["waits"] = a.Program, a.Waits.String()
		if a.Since != 0 {
			session["waitsSince"] = milliseconds(a.Since)
		}
	}
	return session
}

func milliseconds(seconds int64) float64 { return float64(seconds) * 1000 }
