package monitor

import (
	"context"
	"io"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// NewProcess returns a network half in a process of its own, whose log goes to output. Args are further arguments of
// the process.
func (s *Monitor) NewProcess(ctx context.Context, output io.Writer, args ...string) (*privsep.Process, error) {
	return privsep.NewProcess(ctx, s.host(), s.names, s.base, output, args...)
}

func (s *Monitor) host() *privsep.Host {
	return &privsep.Host{Calls: s.Calls(), Logins: &s.logins, Log: s.log, Panics: s.panics}
}
