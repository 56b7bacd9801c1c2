package monitor

import (
	"context"
	"io"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// NewProcess returns a network half in a process of its own, whose log goes to output. Args are further arguments of
// the process.
func (s *Monitor) NewProcess(ctx context.Context, output io.Writer, args ...string) (*privsep.Process, error) {
	return privsep.NewProcess(ctx, s.Host(), s.names, s.base, output, args...)
}
