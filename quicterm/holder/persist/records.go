//go:build linux || darwin

package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// Answer lists, shows or removes records of lost sessions, as the launch says: an Error shows a record with CodeLost.
func Answer(launch *wire.Launch, log *slog.Logger) (wire.Body, error) {
	store, err := openStore(launch.Persist.Dir)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if launch.Persist.Task == wire.PersistList {
		return listRecords(store, launch.Scope, log)
	}
	id := launch.ID.String()
	lost, _, err := readRecord(store, id, launch.Scope)
	if launch.Persist.Task == wire.PersistRemove && (err == nil || errors.Is(err, errUnreadable) && launch.Scope == "") {
		return &wire.Done{}, store.Remove(id)
	}
	if errors.Is(err, ErrLives) || errors.Is(err, fs.ErrNotExist) {
		return &wire.Error{Code: wire.CodeNoSession, Text: "the record of the session is gone"}, nil
	}
	if err != nil {
		return nil, err
	}
	mark := CurrentBoot().Mark(launch.ID)
	lost.Rebooted = mark.Differs(lost.Boot)
	lost.Scope, lost.Boot = "", wire.BootMark{}
	return wire.LostError(lost), nil
}

// errUnreadable means that a file is not a record.
var errUnreadable = errors.New("its record is damaged")

// readRecord returns the record of a lost session, for clients of a scope, and when it was written.
func readRecord(store *Store, id, scope string) (*wire.Lost, time.Time, error) {
	b, written, err := store.Read(id)
	if err != nil {
		return nil, written, err
	}
	lost, err := wire.DecodeLost(b)
	if err != nil {
		return nil, written, errUnreadable
	}
	if scope != "" && scope != lost.Scope {
		return nil, written, fs.ErrNotExist
	}
	lost.Seen = written.Unix()
	return lost, written, nil
}

// listRecords lists the lost sessions for clients of a scope. A record that cannot be read shows why, as its command.
func listRecords(store *Store, scope string, log *slog.Logger) (wire.Body, error) {
	ids, err := store.Lost(time.Now())
	if err != nil {
		log.Warn("the records of lost sessions cannot be listed or removed", "error", err)
	}
	answer, size := new(wire.Records), 0
	for _, id := range ids {
		lost, written, err := readRecord(store, id, scope)
		switch {
		case err == nil:
		case scope == "" && errors.Is(err, errUnreadable):
			lost = &wire.Lost{Name: id[:8], Summary: fmt.Sprintf("(%v)", err)}
		default:
			continue
		}
		m, err := lostState(id, lost, written, scope == lost.Scope)
		if size += len(m.Payload) + 8; err != nil || size > wire.MaxMessage-64 {
			break
		}
		answer.States = append(answer.States, m.Payload)
	}
	return answer, nil
}

func lostState(id string, lost *wire.Lost, written time.Time, own bool) (m wire.Message, err error) {
	parsed, err := wire.ParseSessionID(id)
	if err != nil {
		return m, err
	}
	raw, err := wire.EncodeInfo(wire.Info{
		ID: parsed, Name: lost.Name, Phase: wire.PhaseLost, Since: written.Unix(), Created: lost.Created, PTY: true,
		Cols: lost.Size.Cols, Rows: lost.Size.Rows, Command: lost.Summary, Status: lost.Status,
	})
	if err != nil {
		return m, err
	}
	return wire.New(&wire.State{
		Phase: wire.PhaseLost, Since: written.UnixNano(), Visible: true, Own: own, PTY: true, Name: lost.Name, Info: raw,
	})
}
