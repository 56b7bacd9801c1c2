//go:build linux || darwin

package monitor

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
)

// Sessions are those of all accounts. It finds them, asks their holders, waits for their ends, and counts.
type Sessions struct {
	holders  processes.Holders
	settings func() *configs.Server // as they are now; nobody changes them
	log      *slog.Logger
	panics   *panics.Container
	begun    time.Time // when the daemon was started

	outside bool // sessions do not inherit what confines the daemon

	accounts *accounts
	counts   counts
	census   census
	memory   memorySum

	life     context.Context // ends with the daemon
	stop     func()
	spawning sync.Mutex     // held while work begins
	work     sync.WaitGroup // what finish waits for
}

func newSessions(
	holders processes.Holders, settings func() *configs.Server, log *slog.Logger, contained *panics.Container,
) (*Sessions, error) {
	s := &Sessions{
		holders: holders, settings: settings, log: log, panics: contained, begun: time.Now(),
		accounts: newAccounts(settings().MaxSessionsPerUser),
	}
	s.life, s.stop = context.WithCancel(context.Background())
	var err error
	s.memory.limit, err = memoryLimit(settings().MaxBufferTotal)
	return s, err
}

// contain calls a function that works for one session or client, and returns its error, also if it panics.
func (s *Sessions) contain(log *slog.Logger, f func() error) error { return s.panics.Contain(log, f) }

// spawn calls f in a goroutine that finish waits for. After finish it does nothing, and returns false.
func (s *Sessions) spawn(f func()) bool {
	s.spawning.Lock()
	defer s.spawning.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// finish ends all that runs beside the daemon's tasks, and waits for it.
func (s *Sessions) finish() {
	s.spawning.Lock()
	s.stop()
	s.spawning.Unlock()
	s.work.Wait()
}

// counts are what a monitor counts. See Numbers.
type counts struct {
	started, ended, grants, refused atomic.Uint64
	gaps, duplicates, corrupted     atomic.Uint64
}
