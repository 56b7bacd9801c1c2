//go:build linux || darwin

package e2e

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Requests of an authenticated client.
func badRequests(t *testing.T, h *rig.Host, dial rawDialer) {
	login := func() *rawClient {
		t.Helper()
		c := dial(t, h)
		c.send(encode(t, &wire.Hello{}), newToken(t, h), encode(t, &wire.List{}))
		c.wantMessage(&wire.Listing{})
		return c
	}
	c := login()
	for _, typ := range []wire.Type{0, wire.TypeHello, wire.TypeToken, wire.TypeListing, wire.TypeResume, wire.TypeOpen, wire.TypeQuery, wire.TypeLaunch, wire.TypeAsk, 99, 255} {
		var failed wire.Error
		c.send(header(typ, 100), random(100))
		if c.wantMessage(&failed); failed.Code != wire.CodeUnknown {
			t.Errorf("message %d is answered with %+v", typ, failed)
		}
	}
	var failed wire.Error
	c.send(encode(t, &wire.Kill{Session: strings.Repeat("x", 100_000)}))
	if c.wantMessage(&failed); failed.Code != wire.CodeNoSession {
		t.Errorf("kill of an unknown session is answered with %+v", failed)
	}
	c.send(encode(t, &wire.List{}))
	c.wantMessage(&wire.Listing{}) // the connection continues
	if lines := warnings(h, c.logStart, c.logName); len(lines) > 0 {
		t.Errorf("warnings in the log: %q, want none", lines)
	}
	c.send(encode(t, &wire.Attach{Env: make([][2]string, wire.MaxEnv+1)}))
	if c.wantMessage(&failed); !strings.Contains(failed.Text, "65 environment variables") {
		t.Errorf("too large an environment is answered with %+v", failed)
	}
	c.wantDropped("65 environment variables")

	for name, request := range map[string][]byte{
		"kill of garbage":   append(header(wire.TypeKill, 100), random(100)...),
		"attach of garbage": append(header(wire.TypeAttach, 100), random(100)...),
		"attach of nothing": header(wire.TypeAttach, 0),
	} {
		c := login()
		c.send(request)
		if c.wantDropped("message of type"); t.Failed() {
			t.Fatal(name)
		}
	}
	c = login()
	c.send(header(wire.TypeList, wire.MaxMessage+1))
	c.wantEnd(nil)
	c = login()
	c.send(encode(t, &wire.List{})[:3])
	c.conn.CloseWrite()
	c.wantEnd(nil)
}

// Each proof is valid once. An unknown session and a wrong proof get the same answer.
func badResumes(t *testing.T, h *rig.Host, dial rawDialer) {
	instance := newInstance()
	first, attached := attachRaw(t, h, &wire.Attach{Instance: instance, Session: path.Base(t.Name()), Mode: wire.ModeAttachOrCreate, Command: "cat"})
	resume := func(r *wire.Resume, answer wire.Body) *rawClient {
		t.Helper()
		c := dial(t, h)
		c.send(encode(t, r))
		c.wantMessage(answer)
		return c
	}
	good := newResume(attached, 1, instance)
	resume(good, &wire.Resumed{}).conn.Close()
	denied := func(why string, r *wire.Resume) wire.Denied {
		t.Helper()
		var d wire.Denied
		c := resume(r, &d)
		c.wantEnd(nil)
		if why == "unknown session" || why == "another account" { // as of a client whose session has ended: no reason to warn
			h.Log.Await(t, c.logStart, regexp.MustCompile("level=INFO.*"+c.logName+".*event=gone"))
		} else {
			c.wantLogged("denied")
		}
		return d
	}
	replayed := denied("replayed", good)
	wrong := newResume(attached, 2, instance)
	wrong.Proof[0] ^= 1
	other := newResume(attached, 2, wire.InstanceID{})
	unknown := newResume(attached, 2, instance)
	unknown.ID[15] ^= 1
	foreign := newResume(attached, 2, instance)
	foreign.UID += 12345
	if replayed.Gone {
		t.Error("a replayed proof: the machine was started anew")
	}
	for why, r := range map[string]*wire.Resume{"wrong proof": wrong, "another instance": other} {
		if d := denied(why, r); d != replayed {
			t.Errorf("%s: answered %+v; a replayed proof: %+v", why, d, replayed)
		}
	}
	if os.Getuid() == 0 { // the daemon serves every account
		if d := denied("another account", foreign); d != replayed {
			t.Errorf("another account: answered %+v; a replayed proof: %+v", d, replayed)
		}
	} else {
		c := dial(t, h)
		c.send(encode(t, foreign))
		c.wantDropped("does not serve")
	}
	// Whoever does not know the mark of a session learns neither that nor whether there is
	// such a session.
	wrong.Boot = wire.BootMark(random(8))
	unknown.Boot = wrong.Boot
	if d, e := denied("unknown session", unknown), denied("known session", wrong); d != e || d.Gone != attached.Boot.Differs(wrong.Boot) {
		t.Errorf("unknown session: answered %+v; known session: %+v", d, e)
	}
	wrong.Boot = wire.BootMark{}
	if d := denied("unknown mark", wrong); d.Gone {
		t.Error("a client that knows no mark is told that the machine was started anew")
	}
	resume(newResume(attached, 2, instance), &wire.Resumed{})

	// The first connection is not affected.
	first.send(frame(1, wire.Stdin, "still mine"))
	first.wantOutput("still mine")
}

// Datagrams before a session are dropped. A few do no harm; more end the connection, because
// they take memory.
func TestDatagramsBeforeAttach(t *testing.T) {
	h := newHost(t)
	h.Start()
	const taken = 7
	login := func(datagrams int) *rawClient {
		c := dialRaw(t, h)
		c.send(encode(t, &wire.Hello{}), newToken(t, h), encode(t, &wire.List{}))
		c.wantMessage(&wire.Listing{})
		for range datagrams {
			if err := c.conn.SendDatagram(make([]byte, carrier.MaxDatagram)); err != nil {
				break // it is closed
			}
		}
		return c
	}
	c := login(taken)
	var attached wire.Attached
	c.send(encode(t, &wire.Attach{Command: "cat"}))
	c.wantMessage(&attached)
	c.conn.SendDatagram(frame(1, wire.Stdin, "in a session"))
	c.wantOutput("in a session")

	c = login(200)
	select {
	case <-c.conn.(*quic.Conn).Context().Done():
	case <-time.After(rig.Patience):
		t.Error("200 datagrams do not end the connection")
	}
}
