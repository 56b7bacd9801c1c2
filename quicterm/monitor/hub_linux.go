package monitor

import (
	"context"
	"io"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// runLink runs the process of the hub, again and again, until ctx ends.
func (s *Monitor) runLink(ctx context.Context, host *privsep.LinkHost) error {
	output := s.linkOutput
	if output == nil {
		output = io.Discard
	}
	link, err := privsep.NewLink(ctx, host, s.names, s.base, output, "--log-level", s.settings().LogLevel)
	if err != nil {
		return err
	}
	return link.Run(ctx)
}
