//go:build linux || darwin

package e2e

import (
	"log/slog"
	"testing"

	"github.com/quicterm/quicterm/quicterm/bootstrap"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// ssh's standard streams are a carrier on which a client needs no login.
func TestCarrierOverSSH(t *testing.T) {
	s := newSSHHost(t)
	s.Serve()
	b := &bootstrap.SSH{Host: target, Args: []string{"-F", s.Config(), "--", target}, Log: slog.Default(), Say: func(line string) { t.Log(line) }}
	defer b.Close()
	c, err := b.Dial(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	var flight []byte
	for _, v := range []wire.Body{&wire.Hello{Software: "test"}, &wire.List{}} {
		m, err := wire.New(v)
		if err != nil {
			t.Fatal(err)
		}
		flight = m.Append(flight)
	}
	if _, err := c.Write(flight); err != nil {
		t.Fatal(err)
	}
	m, err := wire.Read(c, wire.MaxMessage)
	if err == nil {
		err = m.Decode(new(wire.Listing))
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.Port() == 0 {
		t.Error("no port")
	}
}
