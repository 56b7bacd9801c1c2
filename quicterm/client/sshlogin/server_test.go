//go:build linux || darwin

package sshlogin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/quicterm/auth"
)

// newServer serves one kind of login, of which sshd offers no configuration for tests. Commands
// print that they ran.
func newServer(t *testing.T, conf *ssh.ServerConfig) (*rig.Host, *Login) {
	t.Helper()
	h := rig.NewHost(t, "")
	key, err := ssh.ParsePrivateKey([]byte(h.Read("host_key")))
	if err != nil {
		t.Fatal(err)
	}
	conf.AddHostKey(key)
	addr := listen(t, func(c net.Conn) {
		conn, channels, requests, err := ssh.NewServerConn(c, conf)
		if err != nil {
			return
		}
		defer conn.Close()
		go ssh.DiscardRequests(requests)
		for request := range channels {
			channel, requests, err := request.Accept()
			if err != nil {
				return
			}
			for r := range requests {
				r.Reply(r.Type == "exec", nil)
				if r.Type == "exec" {
					io.Copy(channel, channel)
					io.WriteString(channel, "ran\n")
					channel.Close()
				}
			}
		}
	})
	return h, login(t, h, addr)
}

// listen calls serve for each connection, until the end of the test.
func listen(t *testing.T, serve func(net.Conn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

var errWrong = errors.New("wrong")

func TestPassword(t *testing.T) {
	tries := 0
	_, l := newServer(t, &ssh.ServerConfig{PasswordCallback: func(_ ssh.ConnMetadata, typed []byte) (*ssh.Permissions, error) {
		if tries++; string(typed) != "sesame" || tries%2 == 1 {
			return nil, errWrong
		}
		return nil, nil
	}})
	if denied := wantDenied(t, l); tries > 0 || denied.Methods != "password" {
		t.Errorf("without a person: %v after %d tries", denied, tries)
	}
	p := &person{answers: map[string]string{"": "sesame"}}
	l.Asker = p
	wantRun(t, l)
	if want := "(" + l.User + "@host) password: false"; len(p.asked) != 2 || p.asked[0] != want {
		t.Errorf("asked %q, want %q twice", p.asked, want)
	}
	p.answers[""], p.asked = "wrong", nil
	wantDenied(t, l)
	if len(p.asked) != usualPrompts {
		t.Errorf("asked %q", p.asked)
	}
	l.Prompts, p.asked = 1, nil
	wantDenied(t, l)
	if len(p.asked) != 1 {
		t.Errorf("asked %q, want one question", p.asked)
	}
	p.answers = nil
	if _, err := l.Run(t.Context(), "true"); !errors.Is(err, errNoAnswer) {
		t.Errorf("a person who does not answer: %v", err)
	}
	l.Methods, p.asked = []string{"publickey"}, nil
	if wantDenied(t, l); len(p.asked) > 0 {
		t.Errorf("asked %q by a method that is not to be used", p.asked)
	}
}

// A second factor: a key, and then questions in two rounds.
func TestKeyboardInteractive(t *testing.T) {
	ask := func(_ ssh.ConnMetadata, challenge ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		answers, err := challenge("", "Two\nlines\n", []string{"Code: ", "Name: "}, []bool{false, true})
		if err == nil && slices.Equal(answers, []string{"123", "ann"}) {
			_, err = challenge("last", "", nil, nil)
			return nil, err
		}
		return nil, errWrong
	}
	h, l := newServer(t, &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			return nil, &ssh.PartialSuccessError{Next: ssh.ServerAuthCallbacks{KeyboardInteractiveCallback: ask}}
		},
	})
	l.Keys = []*auth.UserKey{identity(t, h.Path("id"), nil)}
	if denied := wantDenied(t, l); denied.Methods != "keyboard-interactive" {
		t.Errorf("without a person: %v", denied)
	}
	p := &person{answers: map[string]string{"Code": "123", "Name": "ann"}}
	l.Asker = p
	wantRun(t, l)
	from := "(" + l.User + "@host) "
	if !slices.Equal(p.asked, []string{from + "Code: false", from + "Name: true"}) || !slices.Equal(p.told, []string{"Two", "lines", "last"}) {
		t.Errorf("asked %q, told %q", p.asked, p.told)
	}
}

const evil = "\x1b]0;title\a\x1b[2J\u202e\r"

// Nothing that a server says controls the terminal, and all of it is bounded.
func TestHostileServer(t *testing.T) {
	most := 0 // questions that were answered
	say := func(text string) func(ssh.ConnMetadata) string { return func(ssh.ConnMetadata) string { return text } }
	ask := func(name, instruction string, question string, n, rounds int) func(ssh.ConnMetadata, ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
		return func(_ ssh.ConnMetadata, challenge ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for range rounds {
				questions := make([]string, n)
				for i := range questions {
					questions[i] = question
				}
				answers, err := challenge(name, instruction, questions, make([]bool, n))
				if err != nil {
					return nil, err
				}
				most = max(most, len(answers))
			}
			return nil, errWrong
		}
	}
	for name, test := range map[string]struct {
		conf ssh.ServerConfig
		want error // nil for a DeniedError
	}{
		"banner":       {ssh.ServerConfig{BannerCallback: say(evil + "\n" + evil)}, nil},
		"long banner":  {ssh.ServerConfig{BannerCallback: say(strings.Repeat("x\n", 1000))}, errTooManyLines},
		"long line":    {ssh.ServerConfig{BannerCallback: say(strings.Repeat("x", 100000))}, nil},
		"questions":    {ssh.ServerConfig{KeyboardInteractiveCallback: ask(evil, evil, evil, 1, 1)}, nil},
		"many":         {ssh.ServerConfig{KeyboardInteractiveCallback: ask("", "", "q", 1000, 1)}, errTooManyQuestions},
		"many rounds":  {ssh.ServerConfig{KeyboardInteractiveCallback: ask("", "", "q", 1, 1000)}, errTooManyQuestions},
		"instructions": {ssh.ServerConfig{KeyboardInteractiveCallback: ask("", "i", "", 0, 1000)}, errTooManyLines},
	} {
		if test.conf.KeyboardInteractiveCallback == nil {
			test.conf.PasswordCallback = func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return nil, errWrong }
		}
		_, l := newServer(t, &test.conf)
		p := &person{answers: map[string]string{"": "secret"}}
		l.Asker = p
		_, err := l.Run(t.Context(), "true")
		var denied *DeniedError
		if test.want != nil && !errors.Is(err, test.want) || test.want == nil && !errors.As(err, &denied) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if len(p.asked) > maxQuestions || len(p.told) > maxLines {
			t.Errorf("%s: asked %d times, told %d lines", name, len(p.asked), len(p.told))
		}
		for _, line := range append(p.asked, append(p.told, err.Error())...) {
			if strings.ContainsAny(line, "\x1b\a\r\n\u202e") || len(line) > maxText+100 {
				t.Errorf("%s: shown: %.200q", name, line)
			}
		}
	}
	if most > maxQuestions {
		t.Errorf("%d questions of one round were answered", most)
	}
	m := &methods{login: new(Login)}
	m.next(&ssh.ClientAuthContext{AllowedMethods: []string{evil}})
	if m.denied == nil || strings.ContainsAny(m.denied.Error(), evil[:1]) {
		t.Errorf("methods of a server are shown as %q", m.denied)
	}
}

// A connection that is lost before the server has answered is no denial.
func TestConnectionLost(t *testing.T) {
	h := rig.NewHost(t, "")
	host, err := ssh.ParsePrivateKey([]byte(h.Read("host_key")))
	if err != nil {
		t.Fatal(err)
	}
	for _, lostAt := range []string{"none", publicKey} {
		l := login(t, h, listen(t, func(c net.Conn) {
			conf := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
				return nil, c.Close()
			}, AuthLogCallback: func(_ ssh.ConnMetadata, method string, _ error) {
				if method == lostAt {
					c.Close()
				}
			}}
			conf.AddHostKey(host)
			ssh.NewServerConn(c, conf)
		}))
		l.Keys = []*auth.UserKey{identity(t, h.Path("id"), nil)}
		if _, err := l.Run(t.Context(), "true"); err == nil || errors.As(err, new(*DeniedError)) {
			t.Errorf("lost at %s: %v", lostAt, err)
		}
	}
}

// A server that says nothing, or never ends a line, costs a bounded time.
func TestSilentServer(t *testing.T) {
	h := rig.NewHost(t, "")
	for name, serve := range map[string]func(net.Conn){
		"silent":  func(c net.Conn) { io.Copy(io.Discard, c) },
		"endless": func(c net.Conn) { io.Copy(c, endless{}) },
		"version": func(c net.Conn) {
			fmt.Fprintf(c, "SSH-2.0-%s\r\n", "slow")
			io.Copy(io.Discard, c)
		},
	} {
		l := login(t, h, listen(t, serve))
		l.Timeout = 100 * time.Millisecond
		if s, err := l.Run(t.Context(), "true"); err == nil {
			s.Close()
			t.Errorf("%s: logged in", name)
		}
		l.Timeout = time.Hour
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(errNoAnswer) })
		if _, err := l.Run(ctx, "true"); !errors.Is(err, errNoAnswer) && name != "endless" {
			t.Errorf("%s, canceled: %v", name, err)
		}
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// The time for which the user is asked does not count.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var expired atomic.Int64 // nanoseconds after start
		w := newWatchdog(10*time.Second, func() { expired.Store(int64(time.Since(start))) })
		time.Sleep(4 * time.Second)
		resume := w.pause()
		time.Sleep(time.Hour)
		resume()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if expired.Load() != 0 {
			t.Error("expired early")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := time.Hour + 10*time.Second; expired.Load() != int64(want) || !w.stop() {
			t.Errorf("expired after %v, want %v", time.Duration(expired.Load()), want)
		}
		w.pause()() // nothing is watched any more
		w = newWatchdog(time.Second, func() { t.Error("expired after it was stopped") })
		if w.stop() {
			t.Error("stop says that the time has passed")
		}
		time.Sleep(time.Minute)
	})
}
