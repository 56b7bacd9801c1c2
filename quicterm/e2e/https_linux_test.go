package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os/exec"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// httpsWorld is a roamingWorld whose daemon serves a page at port 443, with a certificate that nobody has signed.
func httpsWorld(t *testing.T) (h *rig.Host, laptop *rig.Namespace, wifi, mobile *netem.Port) {
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	h = newHost(t)
	laptop, wifi, mobile = roamingWorld(t, h)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(-time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	h.Write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	h.Write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	h.Settings = map[string]string{
		"web":             `":443"`,
		"web_certificate": fmt.Sprintf("%q", h.Path("cert.pem")), "web_key": fmt.Sprintf("%q", h.Path("key.pem")),
	}
	return h, laptop, wifi, mobile
}

// Where a network lets only HTTPS through, a session begins over that, comes back after an outage, and moves: it begins in
// a network that lets everything through, is moved to one that does not, and back.
func TestSessionOverHTTPS(t *testing.T) {
	h, laptop, wifi, mobile := httpsWorld(t)
	h.Start()
	wifi.Only(443)
	laptop.Batch("link set wwan0 down")
	x := rig.Open(t, laptop.In(h.Via(h.Addr, "connect", []string{"-t"}, "exec env PS1='$ ' HISTFILE= sh")))
	x.Expect(`\$ `)
	x.Run("echo $((6*7))", "42")
	x.Run("echo ${SSH_CONNECTION%% *}", "10.1.0.1")
	want(t, func() *exec.Cmd { return laptop.In(h.Via(h.Addr, "doctor", nil)) },
		"https ok 10.0.0.1:443 answers in .* ms", "tcp warn .*sessions run over HTTPS meanwhile", "auth ok logged in over HTTPS",
		"paths warn wlan0: UDP no, TCP no — sessions run over HTTPS")

	wifi.Set(netem.Config{Down: true})
	x.Send("echo $((7*7))\r")
	time.Sleep(3 * time.Second) // the outage
	wifi.Set(netem.Config{})
	x.Expect("49\r")
	x.Expect(`\$ `)

	laptop.Batch("link set wwan0 up", "route add default dev wwan0 metric 600")
	wifi.Set(netem.Config{Down: true})
	x.Run("echo $((8*8))", "64")
	mobile.Only(443)
	x.Run("echo $((9*9))", "81")
	wifi.Set(netem.Config{})
	wifi.Only(0)
	x.Run("echo $((10*10))", "100")
	x.Send("exit\r")
	if status := x.Exit(); status != 0 {
		t.Errorf("the session ends with status %d", status)
	}
}

// Something else at port 443 is no server, and says nothing about the key of one.
func TestOtherServerAtHTTPS(t *testing.T) {
	h, laptop, wifi, _ := httpsWorld(t)
	h.NewKey("other_key")
	h.Settings["host_key"] = fmt.Sprintf("[%q]", h.Path("other_key"))
	h.Start()
	wifi.Only(443)
	laptop.Batch("link set wwan0 down")
	out, err := laptop.In(h.Via(h.Addr, "connect", []string{"--"}, "true")).CombinedOutput()
	if err == nil || bytes.Contains(out, []byte("CHANGED")) {
		t.Errorf("%s, %v", out, err)
	}
	t.Logf("%s", out)
}
