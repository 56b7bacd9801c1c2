//go:build linux || darwin

package holder

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder/push"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A service counts the messages to devices, by the path of their endpoints.
type service struct {
	mu   sync.Mutex
	sent []string
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r.URL.Path)
	return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody, Request: r}, nil
}

// A street is a session with devices that may get messages.
type street struct {
	*world
	service
	dir string
}

func onStreet(t *testing.T, f func(s *street)) {
	inBubble(t, wire.Launch{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, func(w *world) {
		s := &street{world: w, dir: t.TempDir() + "/keys"}
		w.locked(func(h *Holder) { h.calls.sender = push.New(s.dir, h.log, &http.Client{Transport: &s.service}) })
		w.wg.Go(func() { io.Copy(io.Discard, w.program.In) })
		f(s)
	})
}

// enroll enrolls a device, and returns its key.
func (s *street) enroll() []byte {
	s.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(&private.PublicKey)
	if err != nil {
		s.t.Fatal(err)
	}
	e := &auth.Enrolled{Key: public.Marshal(), Kind: auth.KindDevice, Name: "a phone", ByKind: "ssh", Made: time.Now().Unix()}
	if _, err := enrolled.Do(&wire.KeyTask{Task: wire.KeysAdd, Dir: s.dir, Line: e.Line()}); err != nil {
		s.t.Fatal(err)
	}
	return e.Key
}

// subscription returns one at a path.
func (s *street) subscription(path string) *wire.Notify {
	s.t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	return &wire.Notify{
		Endpoint: "https://push.example" + path, Key: key.PublicKey().Bytes(), Auth: make([]byte, 16), Signer: key.Bytes(),
	}
}

// visit attaches the page of a device, or of a guest.
func (s *street) visit(open wire.Open, n *wire.Notify) *client {
	s.t.Helper()
	s.instances++
	c, conn := s.joinBy(open, &wire.Attach{
		Instance: wire.InstanceID{0xee, byte(s.instances)}, PTY: true, Role: wire.RoleShare, Size: wire.Size{Cols: 80, Rows: 24}, Notify: n,
	})
	c.run(conn, true)
	return c
}

// ask has the program work for a time, and then ask something, or wait without a word.
func (s *street) ask(worked time.Duration, question string) {
	s.program.SetProgress(true, false)
	time.Sleep(worked)
	s.program.SetProgress(true, true)
	if question != "" {
		s.print(question)
	}
	time.Sleep(time.Minute) // it looks less often after a while
	synctest.Wait()
}

// wantSent checks which messages were sent since the last time.
func (s *street) wantSent(why string, want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.sent, want) {
		s.t.Errorf("%s: messages to %q, want %q", why, s.sent, want)
	}
	s.sent = nil
}

func waitsTold(c *client) int { return told(c, wire.NoticeWaits) }

func told(c *client, code byte) int {
	c.gate.Lock()
	defer c.gate.Unlock()
	return len(slices.DeleteFunc(slices.Clone(c.notices), func(n session.Notice) bool { return n.Code != code }))
}

// A file is offered to the client at which a person types, to another one if that is away, and never to a guest.
func TestOfferFile(t *testing.T) {
	onStreet(t, func(s *street) {
		offer := func() wire.Message {
			t.Helper()
			m, _ := s.world.ask(&wire.Open{}, &wire.OfferFile{ID: 1, Size: 2, Name: "a"})
			synctest.Wait()
			return m
		}
		desk := s.attach("desk")
		phone := s.visit(wire.Open{Client: "phone"}, nil)
		guest := s.visit(wire.Open{Client: "guest", Guest: &wire.Guest{Types: true, Until: 1 << 40}}, nil)
		wantTold := func(why string, counts ...int) {
			t.Helper()
			for i, c := range []*client{desk, phone, guest} {
				if n := told(c, wire.NoticeFile); n != counts[i] {
					t.Errorf("%s: client %d was told %d times, want %d", why, i, n, counts[i])
				}
			}
		}
		for _, c := range []*client{desk, phone, desk, guest} {
			time.Sleep(time.Second)
			c.write("x")
		}
		phone.write("x")
		time.Sleep(time.Second)
		s.want("an offer", offer(), new(wire.Done))
		wantTold("the phone types", 0, 1, 0)
		phone.hangUp()
		guest.write("x")
		time.Sleep(time.Second)
		s.want("an offer", offer(), new(wire.Done))
		wantTold("a guest types", 1, 1, 0)
		desk.hangUp()
		s.want("only a guest is there", offer(), new(wire.Error))
		wantTold("only a guest is there", 1, 1, 0)

		// For a moment, one that was displaced is connected still.
		desk.resume()
		desk.write("x")
		time.Sleep(time.Second)
		taker := s.attach("taker")
		s.want("an offer", offer(), new(wire.Done))
		wantTold("the desk was displaced", 1, 1, 0)
		if n := told(taker, wire.NoticeFile); n != 1 {
			t.Errorf("the one that displaced it was told %d times", n)
		}
	})
}

// A device is told what a session wants from its person while its page is gone, and nothing that it has seen.
func TestCalls(t *testing.T) {
	onStreet(t, func(s *street) {
		desk := s.attach("desk")
		key := s.enroll()
		phone := s.visit(wire.Open{Client: "phone", Key: key}, s.subscription("/phone"))
		desk.write("work\r")
		s.ask(time.Minute, "Continue? ")
		s.wantSent("the page is open")
		if n := waitsTold(phone); n != 1 || waitsTold(desk) != 0 {
			t.Errorf("the page is told %d times that the program waits", n)
		}
		phone.hangUp()
		desk.write("yes\r")
		s.ask(time.Second, "Continue? ")
		s.wantSent("a person has just typed at the desk")
		desk.write("yes\r")
		s.ask(time.Minute, "Continue? ")
		s.wantSent("the page is gone", "/phone")
		desk.write("yes\r")
		s.ask(time.Minute, "")
		s.wantSent("the page is gone, and has all output", "/phone")
		time.Sleep(time.Hour)
		s.print("\a")
		time.Sleep(callTime / 2)
		desk.write("x")
		time.Sleep(time.Minute)
		s.wantSent("a person has come within seconds")
		desk.hangUp()
		s.print("\a")
		time.Sleep(time.Minute)
		s.wantSent("a bell", "/phone")
		for range 1000 {
			s.print("\a")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		s.mu.Lock()
		if n := len(s.sent); n < 2 || n > 25 {
			t.Errorf("%d messages of 1000 bells in a quarter of an hour", n)
		}
		s.sent = nil
		s.mu.Unlock()
		s.program.End(3)
		time.Sleep(time.Minute)
		s.wantSent("the end", "/phone")
	})
}

// The end is told also if another client knows it, which ends the session.
func TestCallAtEnd(t *testing.T) {
	onStreet(t, func(s *street) {
		desk := s.attach("desk")
		s.visit(wire.Open{Client: "phone", Key: s.enroll()}, s.subscription("/phone")).hangUp()
		s.visit(wire.Open{Client: "tablet", Key: s.enroll()}, s.subscription("/tablet"))
		time.Sleep(time.Minute)
		s.program.End(0)
		desk.awaitExit()
		time.Sleep(time.Minute)
		if !s.over() {
			t.Fatal("the session is not over")
		}
		s.h.calls.sender.Wait()
		s.wantSent("the end", "/phone")
	})
}

// A device gets no message when it was revoked, has left the session or has asked for none; guests, keys with restrictions
// and keys that are of no device never.
func TestCallsNobody(t *testing.T) {
	onStreet(t, func(s *street) {
		revoked, left, changed := s.enroll(), s.enroll(), s.enroll()
		device := func(key []byte) wire.Open { return wire.Open{Client: "phone", Key: key} }
		s.visit(device(revoked), s.subscription("/revoked")).hangUp()
		s.visit(device(left), s.subscription("/left")).leave()
		s.visit(device(changed), s.subscription("/changed")).hangUp()
		s.visit(device(changed), &wire.Notify{}).hangUp()
		s.visit(device([]byte("of authorized_keys")), s.subscription("/other")).hangUp()
		s.visit(wire.Open{Client: "token"}, s.subscription("/token")).hangUp()
		guest := wire.Open{Client: "guest", Key: s.enroll(), Guest: &wire.Guest{Types: true, Until: time.Now().Add(24 * time.Hour).Unix()}}
		watcher := s.visit(guest, s.subscription("/guest"))
		s.visit(guest, s.subscription("/guest")).hangUp()
		sum := sha256.Sum256(revoked)
		if _, err := enrolled.Do(&wire.KeyTask{Task: wire.KeysRemove, Dir: s.dir, Sum: sum[:]}); err != nil {
			t.Fatal(err)
		}
		s.ask(time.Minute, "Continue? ")
		s.wantSent("to nobody")
		if waitsTold(watcher) != 0 {
			t.Error("a guest is told that the program waits")
		}
	})
	inBubble(t, wire.Launch{PTY: true, Scope: "s"}, func(w *world) {
		s := &street{world: w, dir: t.TempDir() + "/keys"}
		w.locked(func(h *Holder) { h.calls.sender = push.New(s.dir, h.log, &http.Client{Transport: &s.service}) })
		s.visit(wire.Open{Client: "restricted", Key: s.enroll(), Scope: "s"}, s.subscription("/restricted")).hangUp()
		time.Sleep(time.Minute)
		s.print("\a")
		time.Sleep(time.Minute)
		s.wantSent("to a key with a command")
	})
}
