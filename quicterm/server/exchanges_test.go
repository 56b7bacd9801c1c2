//go:build linux || darwin

package server

import (
	"context"
	"crypto/ed25519"
	"maps"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// counted returns calls that count themselves by name, and a function that returns the counts since it was called last.
func counted(calls *privsep.Calls) (*privsep.Calls, func() map[string]int) {
	var mu sync.Mutex
	counts := make(map[string]int)
	wrapped := *calls
	all := reflect.ValueOf(&wrapped).Elem()
	for i := range all.NumField() {
		name, call := all.Type().Field(i).Name, reflect.ValueOf(all.Field(i).Interface())
		all.Field(i).Set(reflect.MakeFunc(call.Type(), func(args []reflect.Value) []reflect.Value {
			mu.Lock()
			counts[name]++
			mu.Unlock()
			return call.Call(args)
		}))
	}
	return &wrapped, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		since := maps.Clone(counts)
		clear(counts)
		return since
	}
}

// A login is one pass: for each message of a client the two halves exchange one request and its answer at most. The
// messages that come together are one step.
func TestExchangesOfALogin(t *testing.T) {
	onHost(t, func(h *host) {
		key, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
		if err != nil {
			t.Fatal(err)
		}
		monitor := *h.server.Server.monitor
		redeem := monitor.Redeem
		monitor.Offer = func(_ context.Context, o *privsep.Offer) (*privsep.Verdicts, error) {
			return &privsep.Verdicts{Refused: make([]string, len(o.Keys))}, nil // the account accepts all keys
		}
		monitor.Prove = func(ctx context.Context, p *privsep.Proof) (*privsep.Login, error) {
			token, err := h.server.IssueToken(uint32(os.Geteuid()))
			if err != nil {
				return nil, err
			}
			return redeem(ctx, &privsep.Token{Token: token, Path: p.Offer.Path}) // any signature is good
		}
		var since func() map[string]int
		h.server.Server.monitor, since = counted(&monitor)

		hello := &wire.Hello{User: selfName(t), Keys: [][]byte{key.Marshal()}}
		more := &wire.Hello{User: hello.User, Keys: hello.Keys, More: true}
		answer := &wire.Answer{Key: key.Marshal()}
		type step struct {
			sent   []wire.Body
			answer wire.Type
			want   map[string]int
		}
		for name, steps := range map[string][]step{
			"a key that the account is asked for": {
				{[]wire.Body{hello, &wire.List{}}, wire.TypeOffer, map[string]int{"Offer": 1}},
				{[]wire.Body{answer}, wire.TypeListing, map[string]int{"Prove": 1, "List": 1}}, // the List has come before
			},
			"two rounds of keys": {
				{[]wire.Body{more, &wire.List{}}, wire.TypeOffer, map[string]int{"Offer": 1}},
				{[]wire.Body{hello}, wire.TypeOffer, map[string]int{"Offer": 1}},
				{[]wire.Body{answer}, wire.TypeListing, map[string]int{"Prove": 1, "List": 1}},
			},
			"a key that is known to be accepted": {
				{[]wire.Body{hello, answer, &wire.List{}}, wire.TypeListing, map[string]int{"Prove": 1, "List": 1}},
				{[]wire.Body{&wire.List{}}, wire.TypeListing, map[string]int{"List": 1}},
			},
			"a token, and a session": {
				{h.login(&wire.Attach{PTY: true}), wire.TypeAttached, map[string]int{"Redeem": 1, "Attach": 1}},
			},
		} {
			c, _, _ := h.dial(quic.Dial, false)
			since() // the signature of the handshake
			messages, exchanges := 0, 0
			for i, s := range steps {
				h.send(c, s.sent...)
				h.want(name, c, s.answer)
				got := since()
				if !maps.Equal(got, s.want) {
					t.Errorf("%s, step %d: %v, want %v", name, i, got, s.want)
				}
				messages += len(s.sent)
				for _, n := range got {
					exchanges += n
				}
				if exchanges > messages {
					t.Errorf("%s: %d exchanges for %d messages", name, exchanges, messages)
				}
			}
			c.Close()
			time.Sleep(time.Second)
			if got := since(); !maps.Equal(got, map[string]int{"Leave": 1}) {
				t.Errorf("%s: %v when the client has gone", name, got)
			}
		}
	})
}

// What is asked for a client that logs in ends with its connection.
func TestLoginOfClientThatHasGone(t *testing.T) {
	onHost(t, func(h *host) {
		ended := make(chan struct{})
		monitor := *h.server.Server.monitor
		monitor.Offer = func(ctx context.Context, _ *privsep.Offer) (*privsep.Verdicts, error) {
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
		h.server.Server.monitor = &monitor
		c, _, _ := h.dial(quic.Dial, false)
		h.send(c, &wire.Hello{User: "ann", Keys: [][]byte{[]byte("key")}}, &wire.List{})
		time.Sleep(roundTrip)
		start := time.Now()
		c.Close()
		<-ended
		if d := time.Since(start); d > roundTrip {
			t.Errorf("ended after %v", d)
		}
		synctest.Wait()
		if strings.Contains(h.log.String(), "client refused") {
			t.Errorf("a client that has gone is logged as refused:\n%s", h.log.String())
		}
	})
}
