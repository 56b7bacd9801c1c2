//go:build linux || darwin

package e2e

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier/tcp"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A page that qt web serves logs in to the host by the token of a login by ssh, with the host's key: by TCP, or by ssh
// where nothing else gets through.
func TestWebBySSH(t *testing.T) {
	for _, blocked := range []bool{false, true} {
		t.Run(map[bool]string{false: "direct", true: "blocked"}[blocked], func(t *testing.T) { testWebBySSH(t, blocked) })
	}
}

func testWebBySSH(t *testing.T, blocked bool) {
	s := newSSHHost(t)
	s.Serve()
	if blocked {
		s.BlockNetwork()
	}
	qt := s.QT("web", nil)
	out, err := qt.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := qt.Start(); err != nil {
		t.Fatal(err)
	}
	defer qt.Process.Kill()
	var file string
	for lines := bufio.NewScanner(out); file == "" && lines.Scan(); {
		t.Log(lines.Text())
		_, file, _ = strings.Cut(regexp.MustCompile(`file://[^ ;]+`).FindString(lines.Text()), "file://")
	}
	said := make(chan struct{})
	defer func() {
		qt.Process.Kill()
		<-said
	}()
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			t.Error(lines.Text()) // all is well
		}
	}()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the link is %v, %v", info, err)
	}
	link, err := url.Parse(regexp.MustCompile(`http://[^"]+`).FindString(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	begin := func(kind byte, secret string) net.Conn {
		t.Helper()
		first, err := base64.RawURLEncoding.DecodeString(secret)
		if err != nil {
			t.Fatal(err)
		}
		ws, _, err := websocket.Dial(ctx, "ws://"+link.Host+"/socket",
			&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://" + link.Host}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ws.CloseNow() })
		c := websocket.NetConn(ctx, ws, websocket.MessageBinary)
		if _, err := c.Write(append([]byte{kind}, first...)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	asked := begin('q', strings.TrimPrefix(link.Fragment, "s="))
	var size [2]byte
	if _, err := io.ReadFull(asked, size[:]); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(asked, text); err != nil {
		t.Fatal(err)
	}
	var answer struct{ Secret, Token, Key, Host string }
	if err := json.Unmarshal(text, &answer); err != nil || answer.Host != target {
		t.Fatalf("%s, %v", text, err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file with the link was used and stays: %v", err)
	}
	token, err := base64.RawURLEncoding.DecodeString(answer.Token)
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	conf := auth.VerifyServer(func(key ssh.PublicKey) error { shown = ssh.FingerprintSHA256(key); return nil })
	conf.NextProtos = []string{wire.ALPN}
	c, err := tcp.Dial(ctx, func(context.Context, string, string) (net.Conn, error) {
		return begin('r', answer.Secret), nil
	}, netip.AddrPort{}, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if shown != answer.Key {
		t.Errorf("the host has the key %s, the page gets %s", shown, answer.Key)
	}
	for _, m := range []wire.Body{&wire.Hello{}, &wire.Token{Token: token}, &wire.List{}} {
		if err := wire.Send(c, m); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := wire.Read(c, wire.MaxMessage); err != nil || m.Type != wire.TypeListing {
		t.Errorf("message %d, %v; want a listing", m.Type, err)
	}
	qt.Process.Signal(os.Interrupt)
	ended := make(chan error, 1)
	go func() {
		<-said
		ended <- qt.Wait()
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(rig.Patience):
		t.Error("qt web does not end")
	}
}
