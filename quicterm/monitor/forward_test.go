//go:build linux || darwin

package monitor

import (
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// allowing logs a client in that is allowed something.
func (h *host) allowing(allowed auth.Permissions) *privsep.By {
	h.t.Helper()
	a := &account.Account{UID: uint32(os.Geteuid()), Name: "anna", Shell: "/bin/sh"}
	login, err := h.server.login(&proven{
		Admission: access.Admission{UID: a.UID, Account: a.Name, Scope: allowed.Scope(nil)}, account: a, allowed: allowed, at: time.Now(),
	}, privsep.Path{})
	if err != nil {
		h.t.Fatal(err)
	}
	return &privsep.By{Login: login.ID}
}

// forward asks for a side pipe.
func (h *host) forward(by *privsep.By, req *wire.Attach) error {
	h.t.Helper()
	req.Forward = true
	rand.Read(req.Instance[:])
	r := h.request(req)
	r.By, r.Forward, r.Env, r.Command = *by, true, req.Env, req.Command
	attached, err := h.server.Attach(h.t.Context(), r)
	if err == nil {
		attached.Carrier.Close()
	}
	return err
}

// Who may forward nothing, and a guest, gets no side pipe, whatever the request says.
func TestWhoForwards(t *testing.T) {
	onHost(t, func(h *host) {
		for _, test := range []struct {
			name    string
			allowed auth.Permissions
			may     bool
		}{
			{"anybody", auth.Permissions{}, true},
			{"a key with a command", auth.Permissions{Command: "date"}, true},
			{"a key with targets", auth.Permissions{Forward: permit.Rules{NoListen: true, NoListenSocket: true}}, true},
			{"a device", auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindDevice}}, true},
			{"a device of a restricted key", auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindDevice}, Forward: permit.None()}, false},
			{"a restricted key", auth.Permissions{Forward: permit.None()}, false},
			{"a guest", auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindShare, Name: "g", Session: strings.Repeat("0", 32)}}, false},
		} {
			err := h.forward(h.allowing(test.allowed), &wire.Attach{})
			if refused, _ := err.(*wire.Error); (err == nil) != test.may || err != nil && (refused == nil || !strings.Contains(refused.Text, "nothing may be forwarded")) {
				h.t.Errorf("%s: %v", test.name, err)
			}
		}
	})
}

// The program of a side pipe gets its rules from the monitor, in an environment in which the client has nothing.
func TestLaunchOfSidePipe(t *testing.T) {
	onHost(t, func(h *host) {
		h.server.settings().AcceptEnv = []string{"*"}
		allowed := auth.Permissions{Command: "date", Forward: permit.Rules{Dials: []permit.List{{"db:1"}}}}
		c, err := h.server.client(h.allowing(allowed))
		if err != nil {
			h.t.Fatal(err)
		}
		launch, err := c.launch(&privsep.Attach{
			Forward: true, PTY: true, Dir: "", Command: "sh", Env: [][2]string{{permit.Variable, "{}"}, {"LD_PRELOAD", "/x"}},
		}, "forward")
		if err != nil {
			h.t.Fatal(err)
		}
		rules := permit.Rules{NoDialSocket: true, NoListenSocket: true, Dials: allowed.Forward.Dials} // it has a command
		want := []string{"HOME=", "USER=anna", permit.Variable + "=" + rules.Encode()}
		if !launch.Forward || launch.PTY || launch.Persist != nil || !slices.Equal(launch.Env, want) || !slices.Equal(launch.Argv, []string{"qtd", "forward"}) {
			h.t.Errorf("%+v", launch)
		}
	})
}

// Side pipes are neither listed nor found, and are counted apart from sessions.
func TestSidePipesAreNoSessions(t *testing.T) {
	onHost(t, func(h *host) {
		h.server.settings().MaxSessionsPerUser = 2
		for n := range 3 {
			if err := h.forward(h.by(), new(wire.Attach)); (err == nil) != (n < 2) {
				h.t.Errorf("side pipe %d: %v", n, err)
			}
		}
		h.attach()
		h.attach()
		if l := h.list(); len(l.Sessions) != 2 {
			h.t.Errorf("%d sessions are listed", len(l.Sessions))
		}
		kill := &wire.Kill{}
		m, err := wire.New(kill)
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := h.server.Pass(h.t.Context(), &privsep.Pass{By: *h.by(), Session: "forward", Type: m.Type, Payload: m.Payload}); err == nil {
			h.t.Error("a side pipe is found by its name")
		}
		if a, err := h.server.Attach(h.t.Context(), h.request(&wire.Attach{PTY: true})); err == nil {
			a.Carrier.Close()
			h.t.Error("there are three sessions")
		}
	})
}
