//go:build linux || darwin

package monitor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Holders run as their account, which may put anything in their place: any number of sockets that never answer, or
// that answer anything. What that costs is bounded here, and one of them does not spoil the answers of the others.
// maxCollected bounds the descriptions of sessions that are kept for a request, in bytes: several times what fits
// into its answer.
const maxCollected = 4 * wire.MaxMessage

// An entry is a session whose holder has answered, or a record of a lost one.
type entry struct {
	id     wire.SessionID
	state  wire.State
	record bool
}

// ask asks holders of an account for the state of their sessions, until all have answered
// or the time for that is over. It returns the answers, the session that was the latest to
// change its phase first, and how many did not answer.
func (s *Sessions) ask(
	ctx context.Context, open *wire.Open, uid uint32, ids []wire.SessionID, query *wire.Query,
) (entries []entry, silent int) {
	q := question{log: s.log, uid: uid, ids: ids, open: open, request: query}
	var collected atomic.Int64
	entries, silent = askHolders(ctx, s, q, func(id wire.SessionID, answer wire.Message) (entry, error) {
		e, err := s.checkState(id, answer)
		if collected.Add(int64(len(e.state.Info))) > maxCollected {
			e.state.Info = nil
		}
		return e, err
	})
	slices.SortFunc(entries, func(a, b entry) int {
		if a.state.Since != b.state.Since {
			return cmp.Compare(b.state.Since, a.state.Since)
		}
		return strings.Compare(a.id.String(), b.id.String())
	})
	return entries, silent
}

// A question is what holders of an account are asked.
type question struct {
	log     *slog.Logger
	uid     uint32
	ids     []wire.SessionID
	open    *wire.Open
	request wire.Body
}

// askHolders asks holders for at most askTime, and returns the answers that check accepts, and how many have not
// answered well. A session that has ended counts for nothing.
func askHolders[A any](
	ctx context.Context, s *Sessions, q question, check func(wire.SessionID, wire.Message) (A, error),
) (answers []A, silent int) {
	request, err := wire.New(q.request)
	if err != nil {
		q.log.Error("holders are not asked", "error", err)
		return nil, len(q.ids)
	}
	if err := s.accounts.asks.Of(processes.AskerOf(ctx, q.uid)).WaitN(ctx, leastAsks+len(q.ids)); err != nil {
		return nil, len(q.ids) // who asks is gone
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	each := askTime * processes.MaxAsks / time.Duration(max(len(q.ids), processes.MaxAsks))
	askEach(s, q.log, q.ids, func(id wire.SessionID) (a A, err error) {
		ctx, cancel := context.WithTimeout(ctx, each)
		defer cancel()
		answer, err := s.holders.Ask(ctx, q.uid, id, q.open, request)
		if err == nil {
			a, err = check(id, answer)
		}
		return a, err
	}, func(id wire.SessionID, a A, err error) {
		switch {
		case err == nil:
			answers = append(answers, a)
		case !errors.Is(err, fs.ErrNotExist):
			silent++
			q.log.Debug("session left out", "id", id.Short(), "uid", q.uid, "error", err)
		}
	})
	return answers, silent
}

// askAccounts asks accounts for the operator or the daemon, all at once, and returns the answers that come within a time, and how many there are none
// of. The directories of an account may never answer: it keeps no more than maxRequests goroutines.
func askAccounts[T any](
	ctx context.Context, s *Sessions, patience time.Duration, uids []uint32, ask func(context.Context, uint32) (T, error),
) (answers []T, silent int) {
	ctx, cancel := context.WithTimeout(processes.OnSide(ctx, processes.Operator), patience)
	defer cancel()
	answered := make(chan *T, len(uids)) // nil if the account does not answer
	waiting := 0
	for _, uid := range uids {
		if s.spawn(func() {
			var answer *T
			defer func() { answered <- answer }()
			s.contain(s.log, func() error {
				end, err := s.accounts.requests.Take(ctx, processes.AskerOf(ctx, uid))
				if err != nil {
					return err
				}
				defer end()
				one, err := ask(ctx, uid)
				if err == nil {
					answer = &one
				}
				return err
			})
		}) {
			waiting++
		}
	}
	for ; waiting > 0; waiting-- {
		select {
		case answer := <-answered:
			if answer != nil {
				answers = append(answers, *answer)
			}
			continue
		case <-ctx.Done():
		}
		break
	}
	return answers, len(uids) - len(answers)
}

// askEach asks the holders of some sessions, at most [processes.MaxAsks] at once. It calls done with each answer, or
// with why there is none, one at a time. It blocks until all are done.
func askEach[T, A any](s *Sessions, log *slog.Logger, some []T, ask func(T) (A, error), done func(T, A, error)) {
	var mu sync.Mutex
	var asks errgroup.Group
	asks.SetLimit(processes.MaxAsks)
	defer asks.Wait()
	for _, one := range some {
		asks.Go(func() error {
			var answer A
			err := s.contain(log, func() (err error) { answer, err = ask(one); return err })
			mu.Lock()
			defer mu.Unlock()
			done(one, answer, err)
			return nil
		})
	}
}

// checkState reads a holder's answer. What the client will be sent of it is encoded again:
// it is well-formed whatever the holder has sent.
func (s *Sessions) checkState(id wire.SessionID, answer wire.Message) (entry, error) {
	e := entry{id: id}
	if err := answer.Decode(&e.state); err != nil {
		return entry{}, err
	}
	// No session takes more, whatever its holder claims.
	e.state.Memory = min(e.state.Memory, uint64(s.settings().BufferSize.Bytes))
	if !e.state.Visible {
		e.state = wire.State{
			Memory: e.state.Memory, Ended: e.state.Ended, Claimed: e.state.Claimed, Follows: e.state.Follows,
			Side: e.state.Side,
		}
		return e, nil
	}
	info, err := wire.DecodeInfo(e.state.Info)
	if err != nil {
		return entry{}, err
	}
	if info.ID != id || info.Name != e.state.Name || !wire.ValidName(info.Name) {
		return entry{}, errors.New("the holder describes another session")
	}
	e.state.Info, err = wire.EncodeInfo(info)
	return e, err
}

// revokeOf has all holders of an account do a Revoke. The caller has begun a use of the account.
func (s *Sessions) revokeOf(
	ctx context.Context, log *slog.Logger, uid uint32, open *wire.Open, request *wire.Revoke,
) *wire.Revoked {
	q := question{log: log, uid: uid, ids: s.holders.Sessions(uid), open: open, request: request}
	clients, silent := askHolders(ctx, s, q, func(_ wire.SessionID, answer wire.Message) (uint32, error) {
		var one wire.Revoked
		err := answer.Decode(&one)
		return min(one.Clients, maxWatchers+1), err
	})
	revoked := &wire.Revoked{Silent: uint32(silent)}
	for _, n := range clients {
		revoked.Clients += n
	}
	if silent > 0 {
		log.Warn("holders do not revoke", "silent", silent)
	}
	return revoked
}
