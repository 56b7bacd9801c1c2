package monitor

import (
	"log/slog"
	"testing"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/panics"
	"github.com/quicterm/quicterm/quicterm/machine/utmp"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The setting login_records turns the records off.
func TestLoginRecordsOff(t *testing.T) {
	for setting, want := range map[string]int{"on": 1, "off": 0} {
		settings := configs.DefaultServer()
		settings.LoginRecords = setting
		s, err := newSessions(nil, func() *configs.Server { return settings }, slog.New(slog.DiscardHandler), panics.New())
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		s.records = &utmp.Recorder{Warn: func(string, ...any) { tried++ }}
		s.recordLogin(&account.Account{UID: 1}, wire.Started{Process: 1, Terminal: 1 << 20}, privsep.Path{}) // there is no such terminal
		s.work.Wait()
		s.finish()
		if tried != want {
			t.Errorf("%s: %d tries to record a login, want %d", setting, tried, want)
		}
	}
}
