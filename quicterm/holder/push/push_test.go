//go:build linux || darwin

package push

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A service is a push service on this machine, for one browser.
type service struct {
	*httptest.Server
	status   atomic.Int32
	requests chan *http.Request // with the message as its body
}

func newService(t *testing.T) *service {
	s := &service{requests: make(chan *http.Request, 100)}
	s.status.Store(http.StatusCreated)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.requests <- r
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(s.status.Load()))
	}))
	t.Cleanup(s.Close)
	return s
}

// client returns a client like that of NewClient, except that all names lead to the service.
func (s *service) client() *http.Client {
	c := NewClient()
	transport := c.Transport.(*http.Transport)
	transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}
	return c
}

// sent returns how many messages have come.
func (s *service) sent() int { return len(s.requests) }

// enroll enrolls a key, and returns it as a login has it.
func enroll(t *testing.T, dir, kind string) []byte {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	e := &auth.Enrolled{Key: public.Marshal(), Kind: kind, Name: "a phone", ByKind: "ssh", Made: now.Unix()}
	if kind != auth.KindDevice {
		e.Expires = now.Add(time.Minute).Unix()
	}
	if _, err := enrolled.Do(&wire.KeyTask{Task: wire.KeysAdd, Dir: dir, Line: e.Line()}); err != nil {
		t.Fatal(err)
	}
	return e.Key
}

func revoke(t *testing.T, dir string, key []byte) {
	t.Helper()
	sum := sha256.Sum256(key)
	if _, err := enrolled.Do(&wire.KeyTask{Task: wire.KeysRemove, Dir: dir, Sum: sum[:]}); err != nil {
		t.Fatal(err)
	}
}

const endpoint = "https://example.com/secret-of-the-device"

// newSender returns a Sender to a service, and the directory of its keys.
func newSender(t *testing.T, s *service) (sender *Sender, dir string) {
	t.Helper()
	dir = t.TempDir() + "/keys"
	log := slog.New(slog.NewTextHandler(logWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return New(dir, log, s.client()), dir
}

// A logWriter fails a test if a log has what may not be in one.
type logWriter struct{ t *testing.T }

func (w logWriter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "secret-of") {
		w.t.Errorf("in the log: %s", b)
	}
	return len(b), nil
}

// A device gets a message that it alone opens, until it is revoked.
func TestSend(t *testing.T) {
	service, browser := newService(t), newBrowser(t)
	sender, dir := newSender(t, service)
	device := enroll(t, dir, auth.KindDevice)
	m := Message{Session: strings.Repeat("0a", 16), Name: "api", Text: "waits for input"}
	send := func(except map[string]bool) {
		sender.Send(m, false, except)
		sender.Wait()
	}
	send(nil)
	sender.Set(device, &wire.Notify{})
	if send(nil); sender.Any() || service.sent() != 0 {
		t.Error("a message without a subscription")
	}
	sender.Set(device, browser.notify(endpoint))
	if send(map[string]bool{string(device): true}); !sender.Any() || service.sent() != 0 {
		t.Error("a message to a device that has the output")
	}
	send(nil)
	r := <-service.requests
	sealed, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	record := browser.open(t, sealed)
	var got Message
	if err := json.Unmarshal(bytes.TrimRight(record, "\x02\x00"), &got); err != nil || got != m || len(record) != recordSize {
		t.Errorf("the browser gets %q, %v", record, err)
	}
	browser.proven(t, r.Header.Get("Authorization"), "https://example.com")
	if h := r.Header; r.Method != "POST" || r.URL.Path != "/secret-of-the-device" || h.Get("Content-Encoding") != "aes128gcm" ||
		h.Get("TTL") != keepTime || h.Get("User-Agent") != "" {
		t.Errorf("%s %v %v", r.Method, r.URL, h)
	}
	revoke(t, dir, device)
	if send(nil); sender.Any() || service.sent() != 0 {
		t.Error("a message to a device that was revoked")
	}
}

// Keys that are of no device, or of none that is known, get nothing. Nor does a device that has asked for nothing more.
func TestSendToNobody(t *testing.T) {
	service, browser := newService(t), newBrowser(t)
	sender, dir := newSender(t, service)
	device := enroll(t, dir, auth.KindDevice)
	sender.Set(device, browser.notify(endpoint))
	sender.Set(device, nil)
	for _, key := range [][]byte{enroll(t, dir, auth.KindLink), []byte("a key of authorized_keys")} {
		sender.Set(key, browser.notify(endpoint))
	}
	sender.Send(Message{}, true, nil)
	sender.Wait()
	if sender.Any() || service.sent() != 0 {
		t.Errorf("%d messages", service.sent())
	}
	for range maxDevices {
		sender.Set([]byte(rand.Text()), browser.notify(endpoint))
	}
	sender.Set(device, browser.notify(endpoint))
	if n := len(sender.devices); n != maxDevices || sender.devices[string(device)] != nil {
		t.Errorf("%d devices", n)
	}
}

// A subscription that the push service does not know ends, and others do not; no answer leads elsewhere.
func TestAnswers(t *testing.T) {
	for status, kept := range map[int]bool{200: true, 201: true, 307: true, 302: true, 403: true, 429: true, 500: true, 404: false, 410: false} {
		service := newService(t)
		sender, dir := newSender(t, service)
		sender.Set(enroll(t, dir, auth.KindDevice), newBrowser(t).notify(endpoint))
		service.status.Store(int32(status))
		sender.Send(Message{}, false, nil)
		sender.Wait()
		if sender.Any() != kept || service.sent() != 1 {
			t.Errorf("%d: %d requests, kept %v", status, service.sent(), sender.Any())
		}
	}
}

// A session that calls all the time does so a few times, and tells its end.
func TestRate(t *testing.T) {
	service := newService(t)
	sender, dir := newSender(t, service)
	sender.Set(enroll(t, dir, auth.KindDevice), newBrowser(t).notify(endpoint))
	for range 5 * maxBurst {
		sender.Send(Message{Text: "rings"}, false, nil)
		sender.Wait()
	}
	if n := service.sent(); n > maxBurst+1 { // a minute may pass
		t.Errorf("%d messages", n)
	}
	before := service.sent()
	sender.Send(Message{Text: "has ended"}, true, nil)
	sender.Wait()
	if service.sent() != before+1 {
		t.Error("the end is not told")
	}
}

// The client reaches nothing but port 443 of hosts in the Internet, whatever a name leads to.
func TestClientReachesNothingInside(t *testing.T) {
	service := newService(t)
	if _, err := NewClient().Get(service.URL); err == nil || !strings.Contains(err.Error(), "no push service") || service.sent() != 0 {
		t.Errorf("this machine: %v", err)
	}
	for _, address := range []string{
		"127.0.0.1:443", "10.1.2.3:443", "172.16.0.1:443", "192.168.1.1:443", "169.254.169.254:443", "100.64.0.1:443", "0.0.0.0:443",
		"224.0.0.1:443", "255.255.255.255:443", "192.0.2.1:443", "198.18.0.1:443", "[::1]:443", "[::]:443", "[fe80::1%lo]:443",
		"[fd00::1]:443", "[fec0::1]:443", "[::ffff:127.0.0.1]:443", "[::ffff:10.0.0.1]:443", "[64:ff9b::7f00:1]:443", "[2002:7f00:1::]:443",
		"[2001::1]:443", "[2001:db8::1]:443", "[ff02::1]:443", "[::7f00:1]:443", "8.8.8.8:80", "8.8.8.8:22", "8.8.8.8", "",
	} {
		if checkAddress("tcp", address, nil) == nil {
			t.Errorf("%s is reached", address)
		}
	}
	for _, address := range []string{"8.8.8.8:443", "[2001:4860:4860::8888]:443", "[::ffff:8.8.8.8]:443"} {
		if err := checkAddress("tcp", address, nil); err != nil {
			t.Error(err)
		}
	}
}
