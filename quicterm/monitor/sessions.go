//go:build linux || darwin

package monitor

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/machine/utmp"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Sessions are those of all accounts. It finds them, asks their holders, waits for their ends, and counts.
type Sessions struct {
	holders  processes.Holders
	settings func() *configs.Server // as they are now; nobody changes them
	log      *slog.Logger
	panics   *panics.Container
	begun    time.Time // when the daemon was started

	records *utmp.Recorder // nil if logins are not recorded
	outside bool           // sessions do not inherit what confines the daemon

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

// contain calls a function that works for one session, and returns its error, also if it panics.
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

// recordLogin records the login of a session that was just started, and its end when that comes.
func (s *Sessions) recordLogin(a *account.Account, started wire.Started, client privsep.Path) {
	if s.records == nil || s.settings().LoginRecords != "on" || started.Process == 0 {
		return
	}
	l := &utmp.Login{
		Terminal: started.Terminal, Process: int(started.Process), Account: a.Name, UID: a.UID, Client: client.Client.Addr(),
	}
	s.spawn(func() { s.contain(s.log, func() error { s.records.Record(s.life, l); return nil }) })
}

// followLogins records the ends of logins that an earlier daemon has recorded, until ctx ends.
func (s *Sessions) followLogins(ctx context.Context) error {
	if s.records != nil && s.settings().LoginRecords == "on" {
		logins, err := s.records.Files.Living(ctx)
		if err != nil {
			s.log.Warn("the logins of before are not known", "error", err)
		}
		for _, l := range logins {
			s.spawn(func() { s.contain(s.log, func() error { s.records.Follow(s.life, &l); return nil }) })
		}
	}
	<-ctx.Done()
	return nil
}

// counts are what a monitor counts. See Numbers.
type counts struct {
	started, ended, grants, refused atomic.Uint64
	gaps, duplicates, corrupted     atomic.Uint64
}
