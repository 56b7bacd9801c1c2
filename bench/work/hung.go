//go:build linux

package work

import (
	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// HungLogins is an attack by clients that log in to an account whose home does not answer:
// that of [program.HungHome].
type HungLogins struct {
	Sources     int // addresses 127.0.x.y
	Connections int // of all sources together
}

func (a HungLogins) Start(t *measure.T, h *rig.Host) {
	startAttackers(t, "hung", attackers{h.Addr.String(), a.Sources, a.Connections})
}

// hung is what each client of the attack HungLogins does.
func hung(c *quic.Conn) {
	c.Write(append(message(&wire.Hello{User: program.Stranger, Keys: [][]byte{[]byte("key")}}), message(&wire.List{})...))
	<-c.Context().Done()
}
