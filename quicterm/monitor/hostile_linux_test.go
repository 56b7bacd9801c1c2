package monitor

import (
	"context"
	"crypto"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// newMonitor returns a monitor without sessions, in real time.
func newMonitor(t testing.TB) *Monitor {
	t.Helper()
	settings := configs.DefaultServer()
	settings.StateDir, settings.RuntimeDir = t.TempDir(), t.TempDir()
	return monitorWith(t, settings)
}

func monitorWith(t testing.TB, settings *configs.Server) *Monitor {
	t.Helper()
	m, err := New(Config{Settings: settings, Granted: true, Holders: holdertest.New(nil)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.finish()
		m.access.Close()
	})
	return m
}

// takenOver returns the end of a network process that somebody has taken over.
func takenOver(t testing.TB, m *Monitor) *privsep.Loopback {
	t.Helper()
	l, err := privsep.NewLoopback(m.Host(), idle{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context()) // which may not be asked for while a fuzz target runs
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	t.Cleanup(func() { end(); <-done })
	return l
}

// A network process that was taken over gets nothing that no login has allowed.
func TestTakenOverNetworkProcess(t *testing.T) {
	m := newMonitor(t)
	r := takenOver(t, m)
	token, err := m.IssueToken(uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	login, err := r.Redeem(t.Context(), &privsep.Token{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	by := privsep.By{Login: login.ID}
	if _, err := r.List(t.Context(), &by); err != nil {
		t.Fatal(err)
	}
	var guessed privsep.By
	resumed, err := m.login(&proven{at: time.Now()}, privsep.Path{})
	if err != nil {
		t.Fatal(err)
	}
	old, err := m.login(&proven{account: m.self, at: time.Now().Add(-wire.RequestsTime - requestsSlack - time.Second)}, privsep.Path{})
	if err != nil {
		t.Fatal(err)
	}
	key := newUserKey(t).Marshal()
	offer := privsep.Offer{User: m.self.Name, Keys: [][]byte{key}}
	ctx := t.Context()
	for what, try := range map[string]func() error{
		"a signature for ssh": func() error { return second(r.Sign(ctx, &privsep.Sign{Message: []byte("SSHSIG")})) },
		"a signature over a hash": func() error {
			return second(r.Sign(ctx, &privsep.Sign{Message: make([]byte, 32), Hash: uint(crypto.SHA256)}))
		},
		"a signature by no key":           func() error { return second(r.Sign(ctx, &privsep.Sign{Key: 99})) },
		"a signature by a key before all": func() error { return second(r.Sign(ctx, &privsep.Sign{Key: -1})) },
		"a login by no token":             func() error { return second(r.Redeem(ctx, &privsep.Token{})) },
		"a login by a used token":         func() error { return second(r.Redeem(ctx, &privsep.Token{Token: token})) },
		"a login by no signature": func() error {
			return second(r.Prove(ctx, &privsep.Proof{Offer: offer, Exporter: make([]byte, auth.ExporterSize)}))
		},
		"a login by a key that was not offered": func() error {
			return second(r.Prove(ctx, &privsep.Proof{Offer: offer, Key: 1, Exporter: make([]byte, auth.ExporterSize)}))
		},
		"a login without an exporter": func() error { return second(r.Prove(ctx, &privsep.Proof{Offer: offer})) },
		"keys without end": func() error {
			return second(r.Offer(ctx, &privsep.Offer{User: m.self.Name, Keys: make([][]byte, 1000)}))
		},
		"a list by no login":    func() error { return second(r.List(ctx, &guessed)) },
		"a list by a resume":    func() error { return second(r.List(ctx, &privsep.By{Login: resumed.ID})) },
		"a session by no login": func() error { return second(r.Attach(ctx, &privsep.Attach{By: guessed, PTY: true})) },
		"a session by a resume": func() error {
			return second(r.Attach(ctx, &privsep.Attach{By: privsep.By{Login: resumed.ID}, PTY: true}))
		},
		"a session by an old login": func() error { return second(r.Attach(ctx, &privsep.Attach{By: privsep.By{Login: old.ID}, PTY: true})) },
		"a kill by an old login": func() error {
			return second(r.Pass(ctx, &privsep.Pass{By: privsep.By{Login: old.ID}, Type: wire.TypeKill}))
		},
		"a revoke by a resume": func() error {
			return second(r.Revoke(ctx, &privsep.Revoke{By: privsep.By{Login: resumed.ID}, Request: wire.Revoke{All: true}}))
		},
		"an Inspect for a holder": func() error { return second(r.Pass(ctx, &privsep.Pass{By: by, Type: wire.TypeInspect})) },
		"an Attach for a holder":  func() error { return second(r.Pass(ctx, &privsep.Pass{By: by, Type: wire.TypeAttach})) },
		"a resume of any bytes":   func() error { return second(r.Resume(ctx, &privsep.Resume{Payload: []byte("kill")})) },
		"a check of no login":     func() error { return second(r.Check(ctx, &guessed)) },
		"an unknown call":         func() error { _, _, err := r.Try(ctx, 99, []byte{0xf6}); return err },
		"a call of no form":       func() error { _, _, err := r.Try(ctx, offerPlace, []byte{0x61, 'a'}); return err },
	} {
		if try() == nil {
			t.Errorf("it gets %s", what)
		}
	}
	r.Leave(ctx, &login.ID)
	for start := time.Now(); second(r.List(ctx, &by)) == nil; time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("a login that has left still counts")
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Whatever a network process sends, the monitor answers, and does not panic.
func FuzzCalls(f *testing.F) {
	m := newMonitor(f)
	l := takenOver(f, m)
	for place := range placesOf(l.Remote) {
		f.Add(byte(place), []byte{0xa0})
		f.Add(byte(place), []byte{0xff})
	}
	offer := privsep.Offer{User: "root", Keys: [][]byte{{1}}}
	for _, body := range []any{
		offer, privsep.Proof{Offer: offer}, privsep.Attach{PTY: true, Env: [][2]string{{"A", "b"}}}, privsep.Resume{Payload: make([]byte, 84)}, privsep.LoginID{},
		privsep.Sign{Message: []byte("x")}, privsep.Pass{Type: wire.TypeKill}, privsep.Revoke{Request: wire.Revoke{All: true}}, privsep.Token{},
	} {
		b, err := cbor.Marshal(body)
		if err != nil {
			f.Fatal(err)
		}
		place := slices.IndexFunc(placesOf(l.Remote), func(request reflect.Type) bool { return request == reflect.TypeOf(body) })
		f.Add(byte(place), b)
	}
	f.Fuzz(func(t *testing.T, place byte, payload []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, send, _ := l.Try(ctx, int(place), payload); len(send) > 0 {
			t.Errorf("a descriptor for %q", payload)
		}
	})
}

// placesOf returns the types of the requests of a network process, in the order of its calls.
func placesOf(r *privsep.Remote) (requests []reflect.Type) {
	calls := reflect.TypeOf(r.Calls)
	for i := range calls.NumField() {
		requests = append(requests, calls.Field(i).Type.In(1).Elem())
	}
	return requests
}

// offerPlace is the place of Offer in [Calls].
const offerPlace = 4
