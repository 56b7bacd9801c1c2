package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// measureNAT finds out how long the path of a silent UDP connection lives: whether it does for
// keepalive_idle, and if not, or if it is to be known, for how long.
func (x *examination) measureNAT(ctx context.Context, a *reach.Access) {
	n := &x.facts.NAT
	n.KeepaliveIdle = x.settings.KeepaliveIdle.Duration
	keys, closeKeys, why := x.mappingKeys(a)
	defer closeKeys()
	if n.Skipped = why; why != "" {
		return
	}
	idle := n.KeepaliveIdle
	silences := []time.Duration{idle}
	if x.long {
		silences = append(silences, 40*time.Second, 60*time.Second, wire.MaxWait)
		say("measuring for %v how long a silent UDP path lives", wire.MaxWait)
	} else {
		say("measuring for %v whether a silent UDP path lives; --quick leaves this out", idle)
	}
	err := x.outlive(ctx, a, keys, silences)
	if err == nil && n.Lived < idle {
		err = x.outlive(ctx, a, keys, []time.Duration{idle * 3 / 5, idle * 2 / 5, idle / 5})
	}
	if err != nil {
		n.Skipped = err.Error()
	}
	n.Longest = n.Lived == wire.MaxWait
}

// outlive measures for some silences, each on a connection of its own and all at once, whether the
// path outlives them.
func (x *examination) outlive(
	ctx context.Context, a *reach.Access, keys []*auth.UserKey, silences []time.Duration,
) error {
	lived, errs := make([]bool, len(silences)), make([]error, len(silences))
	var wg sync.WaitGroup
	for i, silence := range silences {
		wg.Go(func() {
			m, err := a.Client.OpenMapping(ctx, a.Target.User, keys)
			if err == nil {
				lived[i], err = m.Outlives(ctx, silence)
				m.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	n := &x.facts.NAT
	for i, silence := range silences {
		switch {
		case errs[i] != nil:
		case lived[i]:
			n.Lived = max(n.Lived, silence)
		case n.Died == 0 || silence < n.Died:
			n.Died = silence
		}
	}
	return errors.Join(errs...)
}

// mappingKeys returns the keys for connections by which a NAT is measured, or why it is not.
// Each connection is a login: none of them asks the user to touch a key.
func (x *examination) mappingKeys(a *reach.Access) (keys []*auth.UserKey, closeKeys func(), why string) {
	none := func() {}
	udp := slices.ContainsFunc(x.facts.Candidates, func(c doctor.Candidate) bool { return c.UDP && c.Err == nil })
	switch {
	case x.target.Local:
		return nil, none, "it is this machine"
	case x.quick:
		return nil, none, "left out"
	case !udp:
		return nil, none, "no answer by UDP"
	case x.facts.Server == nil:
		return nil, none, "it needs a login"
	}
	keys, closeKeys, err := a.UserKeys()
	keys = slices.DeleteFunc(keys, func(k *auth.UserKey) bool { return !k.Silent() })
	if err != nil || len(keys) == 0 {
		closeKeys()
		return nil, none, "it needs a login with a key that asks for nothing"
	}
	return keys, closeKeys, ""
}
