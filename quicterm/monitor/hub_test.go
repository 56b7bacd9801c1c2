//go:build linux || darwin

package monitor

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/hub"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// The process of the hub gets signatures of logins to that hub, of now and by a nkey, and no others.
func TestProveToHub(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := auth.NewHostKey(private)
	if err != nil {
		t.Fatal(err)
	}
	nkey, now := "U"+strings.Repeat("A", nkeySize-1), time.Now()
	proof, err := proveToHub(key, "hub.example", &privsep.HubLogin{Time: now.Unix(), NKey: nkey})
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(private.Public().(ed25519.PublicKey), hub.Statement("hub.example", now, nkey), proof.Blob) {
		t.Error("something else is signed")
	}
	for _, r := range []privsep.HubLogin{
		{}, {Time: now.Unix()}, {Time: now.Unix(), NKey: nkey[1:]}, {Time: now.Unix(), NKey: strings.ToLower(nkey)},
		{Time: now.Add(2 * hubClock).Unix(), NKey: nkey}, {Time: now.Add(-2 * hubClock).Unix(), NKey: nkey}, {Time: -1 << 63, NKey: nkey},
	} {
		if _, err := proveToHub(key, "hub.example", &r); err == nil {
			t.Errorf("%+v is signed", r)
		}
	}
}
