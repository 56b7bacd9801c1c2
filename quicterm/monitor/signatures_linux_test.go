package monitor

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// A prover is a user with a key, whose client signs on connections.
type prover struct {
	t       testing.TB
	account string
	key     *auth.UserKey
}

func newProver(t testing.TB, account string) *prover {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := auth.IdentityFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &prover{t, account, key}
}

// sign returns what the network half asks when the client has signed, on a connection with a number, for
// a host.
func (p *prover) sign(host auth.HostID, connection uint64, at []byte) *privsep.Proof {
	p.t.Helper()
	statement := &auth.Statement{
		Host: host, Account: p.account, Time: at, Exporter: exporterOf(connection),
	}
	signature, err := p.key.Sign(statement)
	if err != nil {
		p.t.Fatal(err)
	}
	return &privsep.Proof{
		Offer: privsep.Offer{User: p.account, Keys: [][]byte{p.key.Public.Marshal()}},
		Host:  host[:], Time: at, Exporter: statement.Exporter, Signature: signature,
	}
}

// exporterOf returns what the two ends of a connection with a number derive from its keys.
func exporterOf(connection uint64) []byte {
	return append(binary.BigEndian.AppendUint64(nil, connection), make([]byte, auth.ExporterSize-8)...)
}

// now is the time of a client whose clock is right.
func now() []byte { return auth.ClientTime(time.Now()) }

// keysOf returns settings of a daemon whose accounts accept the keys of provers.
func keysOf(t testing.TB, provers ...*prover) *configs.Server {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // for the children of other accounts
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	settings := configs.DefaultServer()
	settings.StateDir, settings.RuntimeDir = t.TempDir(), t.TempDir()
	settings.AuthorizedKeysFiles = []string{filepath.Join(dir, "%u")}
	settings.SSHDPolicy = "ignore"
	lines := make(map[string][]byte)
	for _, p := range provers {
		lines[p.account] = append(lines[p.account], ssh.MarshalAuthorizedKey(p.key.Public)...)
	}
	for account, text := range lines {
		if err := os.WriteFile(filepath.Join(dir, account), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return settings
}

// self is the name of the account that runs the tests.
func self(t testing.TB) string {
	t.Helper()
	m := newMonitor(t)
	return m.self.Name
}

// A captured valid signature opens nothing but what was signed for, and that once.
func TestSignatureInAnotherPlace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root's daemon has several accounts")
	}
	user := newProver(t, holdertest.Nobody(t).Name)
	root := &prover{t, "root", user.key} // who uses the same key there
	settings := keysOf(t, user, root)
	m := monitorWith(t, settings)
	m.all = true
	r := takenOver(t, m)
	host := m.hostKeys[0].ID
	captured := func(change func(*privsep.Proof)) *privsep.Proof {
		p := user.sign(host, 1, now())
		change(p)
		return p
	}
	elsewhere := user.sign(auth.HostID{1}, 2, now())
	minutes := func(n int) []byte { return auth.ClientTime(time.Now().Add(time.Duration(n) * time.Minute)) }
	for why, p := range map[string]*privsep.Proof{
		"another account":              captured(func(p *privsep.Proof) { p.Offer.User = "root" }),
		"another server's":             elsewhere,
		"another server's as our own":  {Offer: elsewhere.Offer, Host: host[:], Time: elsewhere.Time, Exporter: elsewhere.Exporter, Signature: elsewhere.Signature},
		"another connection":           captured(func(p *privsep.Proof) { p.Exporter = bytes.Repeat([]byte{1}, auth.ExporterSize) }),
		"an old one":                   user.sign(host, 3, minutes(-3)),
		"an old one with another time": {Offer: elsewhere.Offer, Host: host[:], Time: now(), Exporter: elsewhere.Exporter, Signature: user.sign(host, 2, minutes(-3)).Signature},
		"one of a time to come":        user.sign(host, 4, minutes(3)),
		"one of no time":               user.sign(host, 5, nil),
		"one of a made-up time":        user.sign(host, 6, auth.ServerTime(make([]byte, 48))),
	} {
		if _, err := r.Prove(t.Context(), p); err == nil {
			t.Errorf("%s logs in", why)
		}
	}
	sound := user.sign(host, 1, now())
	login, err := r.Prove(t.Context(), sound)
	if err != nil || login.Account != user.account {
		t.Fatal(login, err)
	}
	for _, again := range []*privsep.Proof{sound, {Offer: sound.Offer, Host: sound.Host, Time: sound.Time, Exporter: sound.Exporter, Signature: user.sign(host, 1, sound.Time).Signature}} {
		if _, err := r.Prove(t.Context(), again); err == nil || !strings.Contains(err.Error(), access.ErrSignedTwice.Error()) {
			t.Errorf("a used signature: %v", err)
		}
	}
	if _, err := r.Prove(t.Context(), root.sign(host, 7, now())); err != nil {
		t.Errorf("root's own signature: %v", err)
	}
}

// A client whose clock is wrong logs in by the time of an Offer; so does every client of the next daemon
// at first, which does not know the signatures of the last one.
func TestTimeOfOffer(t *testing.T) {
	user := newProver(t, self(t))
	settings := keysOf(t, user)
	m := monitorWith(t, settings)
	host := m.hostKeys[0].ID
	sound := user.sign(host, 1, now())
	if _, err := m.Prove(t.Context(), sound); err != nil {
		t.Fatal(err)
	}
	next := monitorWith(t, settings)
	for i, m := range []*Monitor{m, next} {
		if _, err := m.Prove(t.Context(), sound); err == nil {
			t.Error("a used signature counts again")
		}
		connection := uint64(2 + i)
		wrong := user.sign(m.hostKeys[0].ID, connection, auth.ClientTime(time.Unix(0, 0)))
		if _, err := m.Prove(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), access.ErrSignedTime.Error()) {
			t.Errorf("a time of 1970: %v", err)
		}
		verdicts, err := m.Offer(t.Context(), &wrong.Offer)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Prove(t.Context(), user.sign(m.hostKeys[0].ID, connection, auth.ServerTime(verdicts.Time))); err != nil {
			t.Errorf("the time of the Offer: %v", err)
		}
	}
	if _, err := next.Prove(t.Context(), user.sign(next.hostKeys[0].ID, 4, now())); err == nil {
		t.Error("the next daemon accepts a time of which it does not know the signatures")
	}
}

// heap returns how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
