package monitor

import (
	"bytes"
	"context"
	"flag"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Random cases are the same in each run, so that a test that passes does so again. -rapid.seed=0 tries others.
func init() { flag.Set("rapid.seed", "1") }

// watchedHolders are the holders of several accounts, which record whose are asked for what.
type watchedHolders struct {
	processes.Holders
	of map[uint32]*holdertest.Holders

	mu      sync.Mutex
	touched []uint32         // accounts whose holders were asked or started
	opened  []string         // accounts that the holders were told
	resumed []wire.SessionID // sessions whose holders have accepted a Resume
}

// reset forgets what was recorded.
func (w *watchedHolders) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touched, w.opened, w.resumed = nil, nil, nil
}

func (w *watchedHolders) touch(uid uint32, open *wire.Open) *holdertest.Holders {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.touched = append(w.touched, uid)
	if open.Account != "" {
		w.opened = append(w.opened, open.Account)
	}
	if w.of[uid] == nil {
		return holdertest.New(nil)
	}
	return w.of[uid]
}

func (w *watchedHolders) Sessions(uid uint32) []wire.SessionID {
	if w.of[uid] == nil {
		return nil
	}
	return w.of[uid].Sessions(uid)
}

func (w *watchedHolders) Ask(ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message) (wire.Message, error) {
	return w.touch(uid, open).Ask(ctx, uid, id, open, m)
}

func (w *watchedHolders) Carry(
	ctx context.Context, uid uint32, id wire.SessionID, open *wire.Open, m wire.Message, datagrams bool,
) (wire.Message, carrier.Carrier, error) {
	answer, c, err := w.touch(uid, open).Carry(ctx, uid, id, open, m, datagrams)
	if err == nil && answer.Type == wire.TypeResumed {
		w.mu.Lock()
		w.resumed = append(w.resumed, id)
		w.mu.Unlock()
	}
	return answer, c, err
}

func (w *watchedHolders) Await(ctx context.Context, uid uint32, id wire.SessionID) (wire.Message, error) {
	return w.of[uid].Await(ctx, uid, id)
}

func (w *watchedHolders) Start(ctx context.Context, a *account.Account, launch *wire.Launch) error {
	return w.touch(a.UID, new(wire.Open)).Start(ctx, a, launch)
}

func (w *watchedHolders) Records(context.Context, *account.Account, *wire.Launch) (wire.Message, error) {
	return wire.New(&wire.Records{})
}

// A takeover is a machine with two accounts whose network process is hostile, and another machine with the
// same users.
type takeover struct {
	here, there *Monitor
	network     *privsep.Loopback
	holders     *watchedHolders
	provers     []*prover
	accounts    map[string]*account.Account
	sessions    map[string]*wire.Attached // one of each account
	resumes     uint64                    // by clients
	connections uint64
	calls       int
	logins      int
}

// A capture is a signature that the process has seen.
type capture struct {
	by         *prover
	proof      *privsep.Proof
	connection uint64
	good       bool // it was made for this machine, and is of now
}

func newTakeover(t *testing.T) *takeover {
	if os.Geteuid() != 0 {
		t.Skip("only root's daemon has several accounts")
	}
	ann, bob := newProver(t, holdertest.Nobody(t).Name), newProver(t, "daemon")
	shared := newProver(t, ann.account)
	h := &takeover{
		provers:  []*prover{ann, bob, shared, {t, bob.account, shared.key}, {t, bob.account, ann.key}}, // bob's account does not accept the last
		accounts: make(map[string]*account.Account), sessions: make(map[string]*wire.Attached),
		holders: &watchedHolders{Holders: holdertest.New(nil), of: make(map[uint32]*holdertest.Holders)},
	}
	for _, m := range []**Monitor{&h.here, &h.there} {
		*m = monitorWith(t, keysOf(t, h.provers[:4]...))
		(*m).all = true
	}
	h.here.holders = h.holders
	for _, p := range []*prover{ann, bob} {
		a, err := h.here.names.Lookup(t.Context(), p.account)
		if err != nil {
			t.Skip(err)
		}
		holders := holdertest.New(func(launch *wire.Launch) holder.Program { return programtest.NewEcho(launch.PTY) })
		t.Cleanup(holders.Kill)
		h.accounts[p.account], h.holders.of[a.UID] = a, holders
	}
	for _, a := range h.accounts {
		h.attach(t, a)
	}
	h.network = takenOver(t, h.here)
	return h
}

// attach starts the session of an account, for a client that has gone.
func (h *takeover) attach(t *testing.T, a *account.Account) {
	login, err := h.here.login(&proven{account: a, at: time.Now()}, privsep.Path{})
	if err != nil {
		t.Fatal(err)
	}
	defer h.here.Leave(login.ID)
	req := &wire.Attach{PTY: true, Session: "of-" + a.Name, Instance: wire.InstanceID{1}}
	m, err := wire.New(req)
	if err != nil {
		t.Fatal(err)
	}
	attached, err := h.here.Attach(t.Context(), &privsep.Attach{
		By: privsep.By{Login: login.ID}, Session: req.Session, Instance: req.Instance, PTY: true, Payload: m.Payload,
	})
	if err != nil {
		t.Fatal(err)
	}
	attached.Carrier.Close()
	h.sessions[a.Name] = new(wire.Attached)
	if err := wire.Message(attached.Answer).Decode(h.sessions[a.Name]); err != nil {
		t.Fatal(err)
	}
	h.sessions[a.Name].UID = a.UID // which the network half tells the client
}

// An attack is what the process does in one case.
type attack struct {
	*takeover
	captures []capture
	used     map[string]map[uint64]bool // connections of an account that were logged in
	live     map[privsep.LoginID]string // their accounts
	ids      []privsep.LoginID          // that it has ever had, and others
	payloads [][]byte                   // of Resumes that were used
}

// sign has a user's client log in somewhere, through the process.
func (h *attack) sign(t *rapid.T) {
	by := rapid.SampledFrom(h.provers).Draw(t, "prover")
	host := rapid.SampledFrom([]*Monitor{h.here, h.there}).Draw(t, "host")
	connection := h.connections + rapid.Uint64Range(0, 2).Draw(t, "connection")
	clock := func(d time.Duration) []byte { return auth.ClientTime(time.Now().Add(d)) }
	told := func(m *Monitor) []byte {
		return auth.ServerTime(m.signatures.Offer(time.Now(), time.Duration(uptime())))
	}
	forged := told(h.here)
	forged[len(forged)-1]++
	times := [][]byte{now(), told(h.here), clock(-3 * time.Minute), clock(3 * time.Minute), told(h.there), forged}
	i := rapid.IntRange(0, len(times)-1).Draw(t, "time")
	h.captures = append(h.captures, capture{
		by: by, proof: by.sign(host.hostKeys[0].ID, connection, times[i]), connection: connection,
		good: host == h.here && i <= 1 && by != h.provers[4],
	})
}

// prove presents a signature, perhaps as another one.
func (h *attack) prove(t *rapid.T) {
	if len(h.captures) == 0 {
		t.Skip("nothing was captured")
	}
	c := rapid.SampledFrom(h.captures).Draw(t, "capture")
	other := rapid.SampledFrom(h.captures).Draw(t, "other")
	p := *c.proof
	p.Offer.Attempt = rapid.Uint64Range(1, 2).Draw(t, "attempt")
	p.Offer.Keys = [][]byte{c.proof.Offer.Keys[0], other.proof.Offer.Keys[0]}
	switch rapid.IntRange(0, 19).Draw(t, "change") {
	case 0:
		p.Offer.User = other.by.account
	case 1:
		p.Offer.User = "root"
	case 2:
		p.Host = other.proof.Host
	case 3:
		p.Time = other.proof.Time
	case 4:
		p.Exporter = other.proof.Exporter
	case 5:
		p.Key = 1
	case 6:
		p.Signature = other.proof.Signature
	case 7:
		p.Offer.Path.Client = netip.MustParseAddrPort("192.0.2.1:1000")
	}
	same := p.Offer.User == c.by.account && bytes.Equal(p.Host, c.proof.Host) && bytes.Equal(p.Time, c.proof.Time) &&
		bytes.Equal(p.Exporter, c.proof.Exporter) && bytes.Equal(p.Signature, c.proof.Signature) &&
		bytes.Equal(p.Offer.Keys[p.Key], c.proof.Offer.Keys[0])
	want := same && c.good && !h.used[c.by.account][c.connection]
	h.holders.reset()
	h.calls++
	login, err := h.network.Prove(t.Context(), &p)
	switch {
	case (err == nil) != want:
		t.Fatalf("proof of %s for %s, good %v, as signed %v: %v", c.by.account, p.Offer.User, c.good, same, err)
	case err == nil && (login.Account != c.by.account || login.UID != h.accounts[c.by.account].UID):
		t.Fatalf("a signature for %s opens %s", c.by.account, login.Account)
	case err == nil:
		h.used[c.by.account][c.connection] = true
		h.live[login.ID] = login.Account
		h.ids = append(h.ids, login.ID)
		h.logins++
	}
	h.wantTouched(t, "")
}

// wantTouched checks that only the holders of an account were asked, or none.
func (h *attack) wantTouched(t *rapid.T, name string) {
	h.holders.mu.Lock()
	defer h.holders.mu.Unlock()
	for _, uid := range h.holders.touched {
		if name == "" || uid != h.accounts[name].UID {
			t.Fatalf("on behalf of %q, a holder of user id %d was asked", name, uid)
		}
	}
	for _, opened := range h.holders.opened {
		if opened != name {
			t.Fatalf("on behalf of %q, a holder was asked for %q", name, opened)
		}
	}
}

// use asks for something by an id: of a login, of one that has left, of another machine's, or made up.
func (h *attack) use(t *rapid.T) {
	by := privsep.By{Login: rapid.SampledFrom(h.ids).Draw(t, "login")}
	name := h.live[by.Login]
	target := "of-" + rapid.SampledFrom(h.provers).Draw(t, "session").account
	h.holders.reset()
	h.calls++
	var err error
	switch what := rapid.IntRange(0, 4).Draw(t, "request"); what {
	case 0:
		var l *wire.Listing
		if l, err = h.network.List(t.Context(), &by); err == nil && (len(l.Sessions) != 1 || !strings.Contains(string(l.Sessions[0]), "of-"+name)) {
			t.Fatalf("%s sees %d sessions: %q", name, len(l.Sessions), l.Sessions)
		}
		if (err == nil) != (name != "") {
			t.Fatalf("a list for %q: %v", name, err)
		}
	case 1:
		_, err = h.network.Pass(t.Context(), &privsep.Pass{By: by, Type: wire.TypeClear, Session: target, Payload: []byte{0xa0}})
	case 2:
		_, err = h.network.Attach(t.Context(), &privsep.Attach{By: by, Mode: wire.ModeAttach, Session: target, Payload: []byte{0xa0}})
	case 3:
		_, err = h.network.Check(t.Context(), &by)
	case 4:
		_, err = h.network.Revoke(t.Context(), &privsep.Revoke{By: by, Request: wire.Revoke{Key: make([]byte, 32)}})
	}
	if name == "" && err == nil {
		t.Fatal("an id of no login is good for something")
	}
	h.wantTouched(t, name)
}

// leave ends a login.
func (h *attack) leave(t *rapid.T) {
	id := rapid.SampledFrom(h.ids).Draw(t, "login")
	h.network.Leave(context.Background(), &id)
	delete(h.live, id)
}

// resume passes the Resume of a client on, or one that it has used or that was changed.
func (h *attack) resume(t *rapid.T) {
	names := []string{h.provers[0].account, h.provers[1].account}
	name := rapid.SampledFrom(names).Draw(t, "account")
	a := h.sessions[name]
	h.resumes++
	m := &wire.Resume{UID: a.UID, ID: a.ID, N: h.resumes, Instance: wire.InstanceID{1}}
	m.Proof = auth.Proof(a.Secret, m.Statement())
	other := h.sessions[names[1-slices.Index(names, name)]]
	change := rapid.IntRange(0, 6).Draw(t, "change")
	switch change {
	case 1:
		m.UID = other.UID
	case 2:
		m.UID, m.ID = other.UID, other.ID
	case 3:
		m.N++
	case 4:
		m.Instance[0]++
	case 5:
		m.ID = other.ID
	}
	encoded, err := wire.New(m)
	if err != nil {
		t.Fatal(err)
	}
	payload := encoded.Payload
	if change == 6 {
		if len(h.payloads) == 0 {
			t.Skip("no Resume was used")
		}
		payload = rapid.SampledFrom(h.payloads).Draw(t, "payload")
	}
	h.holders.reset()
	h.calls++
	h.network.Resume(t.Context(), &privsep.Resume{Payload: payload}) // fails: the carrier of a holder in memory is no socket
	h.holders.mu.Lock()
	defer h.holders.mu.Unlock()
	if change != 0 && len(h.holders.resumed) > 0 {
		t.Fatalf("a Resume with change %d is accepted", change)
	}
	if change == 0 {
		if len(h.holders.resumed) != 1 {
			t.Fatal("the client's own Resume is not accepted")
		}
		h.payloads = append(h.payloads, payload)
	}
}

// Whatever a network process does that was taken over, and has seen two accounts log in here and
// elsewhere, an account gets nothing by what another one has proven, nor by what was meant for another
// place or time; and each call leaves few bytes.
func TestHostileNetworkProcess(t *testing.T) {
	h := newTakeover(t)
	elsewhere, err := h.there.login(&proven{account: h.accounts[h.provers[0].account], at: time.Now()}, privsep.Path{})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	rapid.Check(t, func(t *rapid.T) {
		one := &attack{
			takeover: h, live: make(map[privsep.LoginID]string), ids: []privsep.LoginID{{}, {1}, elsewhere.ID},
			used: map[string]map[uint64]bool{h.provers[0].account: {}, h.provers[1].account: {}},
		}
		h.connections += 3
		t.Repeat(map[string]func(*rapid.T){
			"sign": one.sign, "sign another": one.sign, "prove": one.prove, "prove another": one.prove,
			"use": one.use, "leave": one.leave, "resume": one.resume,
		})
		for id := range one.live {
			h.network.Leave(context.Background(), &id)
		}
	})
	kept := heap() - before
	t.Logf("%d calls, %d logins; %d bytes are kept", h.calls, h.logins, kept)
	if h.logins == 0 || h.calls < 100 {
		t.Errorf("only %d calls and %d logins", h.calls, h.logins)
	}
	if allowed := int64(1<<20 + 512*h.calls); kept > allowed {
		t.Errorf("%d calls leave %d bytes, more than %d", h.calls, kept, allowed)
	}
}
