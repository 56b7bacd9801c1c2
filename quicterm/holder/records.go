//go:build linux || darwin

package holder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/persist"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// DoRecords starts a process of the account that lists or removes records of lost sessions, and returns
// its answer: Records, Done or Error. It blocks until then, at most for startTime.
// If it returns a process id, even with an error, the caller waits for that process.
func DoRecords(ctx context.Context, launch *wire.Launch, p Process) (pid int, answer wire.Message, err error) {
	return start(ctx, launch, p)
}

// answerRecords does the task of a launch that is about records.
func answerRecords(launch *wire.Launch, log *slog.Logger) (wire.Body, error) {
	store, err := openStore(launch.Persist)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if launch.Persist.Task == wire.PersistRemove {
		return &wire.Done{}, removeRecord(store, launch)
	}
	if err := store.Prune(time.Now(), launch.Persist.TTL); err != nil {
		log.Warn("old records cannot be removed", "error", err)
	}
	ids, err := store.IDs()
	if err != nil {
		return nil, err
	}
	var states []*wire.State
	for _, id := range ids {
		state, err := lostState(store, id, launch)
		switch {
		case err == nil:
			states = append(states, state)
		case !errors.Is(err, persist.ErrBusy) && !errors.Is(err, fs.ErrNotExist):
			log.Warn("a record cannot be read", "id", id, "error", err)
		}
	}
	slices.SortFunc(states, func(a, b *wire.State) int { return cmp.Compare(b.Since, a.Since) })
	answer, size := new(wire.Records), 0
	for _, s := range states {
		m, err := wire.New(s)
		if size += len(m.Payload) + 8; err != nil || size > wire.MaxMessage-64 {
			break
		}
		answer.States = append(answer.States, m.Payload)
	}
	return answer, nil
}

// lostState describes a session that is gone to clients of the launch's scope. The error is ErrBusy if it lives. A
// record that cannot be read shows why, as its command.
func lostState(store *persist.Store, id string, launch *wire.Launch) (*wire.State, error) {
	record, err := store.Look(id)
	if err != nil {
		return nil, err
	}
	defer record.Close()
	parsed, err := wire.ParseSessionID(id)
	if err != nil {
		return nil, err
	}
	scope := launch.Scope
	var f *persist.Facts
	key, err := readKey(launch.Persist.Key)
	if err == nil {
		if f, err = record.Head(key); errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err != nil {
		if scope != "" {
			return nil, err
		}
		f = &persist.Facts{Name: id[:8], Command: fmt.Sprintf("(record not readable: %v)", err)}
	}
	if scope != "" && scope != f.Scope || !wire.ValidName(f.Name) {
		return nil, fs.ErrNotExist
	}
	raw, err := wire.EncodeInfo(wire.Info{
		ID: parsed, Name: f.Name, Phase: wire.PhaseLost, Since: f.Seen, Created: f.Created, PTY: true,
		Cols: f.Cols, Rows: f.Rows, Command: wire.Printable(f.Command, wire.MaxSummary), Status: f.Status,
	})
	return &wire.State{
		Phase: wire.PhaseLost, Since: time.Unix(f.Seen, 0).UnixNano(), Visible: true, Own: scope == f.Scope, PTY: true,
		Name: f.Name, Info: raw,
	}, err
}

// removeRecord removes the record of a lost session, for a client of the launch's scope.
func removeRecord(store *persist.Store, launch *wire.Launch) error {
	id := launch.ID.String()
	if launch.Scope != "" {
		if _, err := lostState(store, id, launch); err != nil {
			return err
		}
	}
	record, err := takeSoon(store, id)
	if err != nil {
		return err
	}
	return record.Remove()
}
