//go:build linux || darwin

package monitor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// persist returns how the sessions of the client's account are kept on disk, or nil if they are not.
func (c *client) persist(task wire.PersistTask) *wire.Persist {
	settings := c.server.settings()
	if settings.Persist == "off" {
		return nil
	}
	expanded := strings.NewReplacer("%%", "%", "%h", c.account.Home, "%u", c.account.Name).Replace(settings.PersistDir)
	return &wire.Persist{Task: task, Dir: expanded}
}

// lost returns the sessions that are gone and have a record, as far as the client may see them, those
// that were seen last first. A process of the account reads the records.
func (c *client) lost(ctx context.Context) ([]entry, error) {
	persist := c.persist(wire.PersistList)
	if persist == nil {
		return nil, nil
	}
	answer, err := c.records(ctx, &wire.Launch{Persist: persist, Scope: c.Scope})
	if err != nil {
		return nil, err
	}
	var records wire.Records
	if err := answer.Decode(&records); err != nil {
		return nil, err
	}
	var entries []entry
	for _, payload := range records.States {
		var state wire.State
		m := wire.Message{Type: wire.TypeState, Payload: payload}
		if err := m.Decode(&state); err != nil {
			return nil, err
		}
		info, err := wire.DecodeInfo(state.Info)
		if err != nil {
			return nil, err
		}
		e, err := c.server.checkState(info.ID, m)
		if err != nil || e.state.Phase != wire.PhaseLost {
			return nil, errors.New("a record of something else than a lost session")
		}
		e.record = true
		entries = append(entries, e)
	}
	return visible(entries), nil
}

func (c *client) records(ctx context.Context, launch *wire.Launch) (answer wire.Message, err error) {
	return c.server.task(ctx, c.account, launch)
}

// task has a process of an account do a task.
func (s *Sessions) task(ctx context.Context, a *account.Account, launch *wire.Launch) (answer wire.Message, err error) {
	ctx, cancel := context.WithTimeout(ctx, promptTime)
	defer cancel()
	if err := s.accounts.starts.Of(processes.AskerOf(ctx, a.UID)).Wait(ctx); err != nil {
		return answer, err
	}
	if answer, err = s.holders.Records(ctx, a, launch); err != nil {
		return answer, err
	}
	failed := new(wire.Error)
	if err := answer.Decode(failed); err == nil {
		return answer, failed
	}
	return answer, nil
}

// findOrLost is find, also among the lost sessions if there is no such session that lives: without a name, it is the
// one that was seen last.
func (c *client) findOrLost(ctx context.Context, name string, wanted func(*entry) bool) (*entry, error) {
	e, err := c.server.find(ctx, c.account.UID, c.open(), name, wanted)
	if missing, ok := errors.AsType[*wire.Error](err); !ok || missing.Code != wire.CodeNoSession {
		return e, err
	}
	entries, failed := c.lost(ctx)
	if failed != nil {
		c.log.Warn("the records of an account cannot be read", "error", failed)
		return nil, err
	}
	e, none := pick(entries, name, func(*entry) bool { return true })
	switch {
	case none == nil:
		return e, nil
	case none.Code == wire.CodeNoSession:
		return nil, err
	}
	return nil, none
}

// showLost returns what a lost session has left, as the refusal of an Attach.
func (c *client) showLost(ctx context.Context, e *entry) error {
	_, err := c.records(ctx, &wire.Launch{ID: e.id, Scope: c.Scope, Persist: c.persist(wire.PersistShow)})
	if err == nil {
		err = lostError(e)
	}
	return err
}

// lostError tells a client what can be done with a record.
func lostError(e *entry) error {
	return errorf(wire.CodeFailed,
		"session %q was lost: qt attach shows it, qt kill removes what is left of it", e.state.Name)
}

// passToRecord does a request on the record of a lost session: only a Kill, which removes it.
func (c *client) passToRecord(ctx context.Context, e *entry, m wire.Message) (wire.Message, error) {
	if m.Type != wire.TypeKill {
		return m, lostError(e)
	}
	c.log.Info("lost session removed", "event", "kill", "session", e.state.Name, "id", e.id.Short())
	return c.records(ctx, &wire.Launch{ID: e.id, Scope: c.Scope, Persist: c.persist(wire.PersistRemove)})
}

// withLost adds the lost sessions to those that live.
func (c *client) withLost(ctx context.Context, entries []entry) []entry {
	c.listing.Lock()
	defer c.listing.Unlock()
	if c.listedLost.IsZero() || time.Since(c.listedLost) >= lostAge {
		lost, err := c.lost(ctx)
		if err != nil {
			c.log.Warn("the records of an account cannot be read", "error", err)
		}
		c.lostSessions, c.listedLost = lost, time.Now()
	}
	return append(entries, slices.DeleteFunc(slices.Clone(c.lostSessions), func(l entry) bool {
		return slices.ContainsFunc(entries, func(e entry) bool { return e.id == l.id })
	})...)
}
