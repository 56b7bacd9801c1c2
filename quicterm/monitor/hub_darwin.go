package monitor

import (
	"context"
	"errors"

	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// runLink fails: on this system, no process can be confined as that of a hub must be.
func (s *Monitor) runLink(context.Context, *privsep.LinkHost) error {
	return errors.New("the setting hub needs Linux")
}
