//go:build linux || darwin

package monitor

import (
	"crypto/sha256"
	"os"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// With an enrolled key that is revoked, the logins end that it has let in and that ask for nothing, and those that are just
// being proven.
func TestRevokeLogins(t *testing.T) {
	onHost(t, func(h *host) {
		t := h.t
		a := &account.Account{UID: uint32(os.Geteuid()), Name: "anna", Home: t.TempDir()}
		device := func() (e *auth.Enrolled, sum []byte, login privsep.LoginID) {
			t.Helper()
			e = &auth.Enrolled{
				Key: newUserKey(t).Marshal(), Kind: auth.KindDevice, Name: "phone", ByKind: "ssh",
				Made: time.Now().Unix(), Used: time.Now().Unix(),
			}
			hash := sha256.Sum256(e.Key)
			if _, err := h.server.keyTask(t.Context(), a, wire.KeyTask{Task: wire.KeysAdd, Sum: hash[:], Line: e.Line()}); err != nil {
				t.Fatal(err)
			}
			l, err := h.server.login(&proven{
				Admission: access.Admission{UID: a.UID, Account: a.Name, Key: string(e.Key)}, account: a,
				allowed: auth.Permissions{Enrolled: e}, at: time.Now(),
			}, privsep.Path{})
			if err != nil {
				t.Fatal(err)
			}
			return e, hash[:], l.ID
		}
		revoked, sum, gone := device()
		kept, _, stays := device()
		answer, err := h.server.revokeAll(t.Context(), h.server.log, a, &wire.Open{}, &wire.Revoke{Key: sum})
		if err != nil || answer.Keys != 1 {
			t.Fatalf("%+v, %v", answer, err)
		}
		if _, err := h.server.client(&privsep.By{Login: gone}); err == nil {
			t.Error("a login by a key that was revoked is there")
		}
		if _, err := h.server.client(&privsep.By{Login: stays}); err != nil {
			t.Errorf("a login by another key: %v", err)
		}
		if err := h.server.useKey(t.Context(), a, revoked); err == nil {
			t.Error("a key that was revoked lets a login in that was about to be proven")
		}
		if err := h.server.useKey(t.Context(), a, kept); err != nil {
			t.Error(err)
		}
	})
}
