package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/web/link"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// entering returns a client as the page is one: it trusts the host of a link alone.
func (h *enrolling) entering(l *link.Link, key ssh.Signer) *client.Client {
	c := client.New(client.Config{
		User: l.User, Keys: []*auth.UserKey{auth.NewUserKey(key, "")},
		Resolve: func(context.Context) ([]netip.AddrPort, error) { return []netip.AddrPort{h.Addr}, nil },
		CheckHost: func(key ssh.PublicKey) error {
			if auth.HostIDOf(key) != l.HostKey {
				return errors.New("another host")
			}
			return nil
		},
	})
	h.t.Cleanup(c.Close)
	return c
}

// The link that qt web --qr prints on a terminal, and nowhere else, lets a browser in, which enrolls its own key.
func TestWebLink(t *testing.T) {
	if !insideWith(t, "ip") {
		return
	}
	h := enrollingMachine(t)
	web := func(args ...string) *exec.Cmd {
		return h.To("127.0.0.1", h.Addr.Port(), "web", append([]string{"-l", "anna", "-i", h.Path("id"), "--qr"}, args...), "api")
	}
	apart := web("--url", "https://shell.example")
	apart.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if out, err := apart.CombinedOutput(); err == nil || !strings.Contains(string(out), "needs a terminal") {
		t.Errorf("without a terminal: %v\n%s", err, out)
	}
	s := rig.OpenSized(t, web(), 80, 50)
	s.Expect("--url")
	if status := s.Exit(); status == 0 {
		t.Error("a page that nobody knows has a link")
	}
	s = rig.OpenSized(t, web("--url", "https://shell.example"), 250, 50)
	fragment := s.Expect(`https://shell\.example/#(\S+)`)[1]
	s.Expect("▀")
	s.Expect("good once, for 2 minutes")
	if status := s.Exit(); status != 0 {
		t.Errorf("qt ends with status %d", status)
	}
	l, err := link.Parse(fragment)
	if err != nil || l.User != "anna" || l.Session != "api" {
		t.Fatalf("%s, %+v, %v", fragment, l, err)
	}

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := private.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	device, err := link.NewDeviceKey(public, func(data []byte) ([]byte, error) {
		sum := sha256.Sum256(data)
		r, s, err := ecdsa.Sign(rand.Reader, private, sum[:])
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), err
	})
	if err != nil {
		t.Fatal(err)
	}
	req := &wire.Enroll{Kind: auth.KindDevice, Key: device.PublicKey().Marshal(), Name: "phone"}
	if _, err := h.entering(l, l.Seed.Signer()).Enroll(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.entering(l, l.Seed.Signer()).List(t.Context()); !errors.As(err, new(*client.DeniedError)) {
		t.Errorf("the link again: %v", err)
	}
	if _, _, err := h.entering(l, device).List(t.Context()); err != nil {
		t.Errorf("the device: %v", err)
	}
	other := *l
	other.HostKey[0]++
	if _, _, err := h.entering(&other, device).List(t.Context()); err == nil || errors.As(err, new(*client.DeniedError)) {
		t.Errorf("another host than the link's: %v", err)
	}
	sum := sha256.Sum256(device.PublicKey().Marshal())
	if _, err := h.entering(l, device).Revoke(t.Context(), sum[:]); err != nil {
		t.Errorf("a device that forgets itself: %v", err)
	}
	if _, _, err := h.entering(l, device).List(t.Context()); !errors.As(err, new(*client.DeniedError)) {
		t.Errorf("a device that was forgotten: %v", err)
	}
}
