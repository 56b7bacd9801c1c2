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

// forward asks for a side pipe that forwards.
func (h *host) forward(by *privsep.By, req *wire.Attach) error {
	h.t.Helper()
	req.Side = wire.SideForward
	return h.side(by, req)
}

// side asks for a side pipe.
func (h *host) side(by *privsep.By, req *wire.Attach) error {
	h.t.Helper()
	rand.Read(req.Instance[:])
	r := h.request(req)
	r.By, r.Side, r.Env, r.Command = *by, req.Side, req.Env, req.Command
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
			any     bool // connections to any port
		}{
			{"anybody", auth.Permissions{}, true, true},
			{"a key with a command", auth.Permissions{Command: "date"}, true, true},
			{"a key without listeners", auth.Permissions{Forward: permit.Rules{NoListen: true, NoListenSocket: true}}, true, true},
			{"a key without connections", auth.Permissions{Forward: permit.Rules{NoDial: true}}, true, false},
			{"a key with targets", auth.Permissions{Forward: permit.Rules{Dials: []permit.List{{"db:5432"}}}}, true, false},
			{"a device", auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindDevice}}, true, true},
			{"a device of a restricted key", auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindDevice}, Forward: permit.None()}, false, false},
			{"a key that may only offer an agent", auth.Permissions{Forward: permit.Rules{NoDial: true, NoListen: true, NoDialSocket: true, NoListenSocket: true}}, true, false},
			{"a restricted key", auth.Permissions{Forward: permit.None()}, false, false},
			{"a guest", auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindShare, Name: "g", Session: strings.Repeat("0", 32)}}, false, false},
		} {
			if c, err := h.server.client(h.allowing(test.allowed)); err == nil && c.open().Forwards != test.any {
				h.t.Errorf("%s: the holder is told that it may forward any port: %t", test.name, !test.any)
			}
			err := h.forward(h.allowing(test.allowed), &wire.Attach{})
			if refused, _ := err.(*wire.Error); (err == nil) != test.may || err != nil && (refused == nil || !strings.Contains(refused.Text, "nothing may be forwarded")) {
				h.t.Errorf("%s: %v", test.name, err)
			}
		}
	})
}

// Who may move no files gets no side pipe for them, and whoever may only move files gets nothing else.
func TestWhoMovesFiles(t *testing.T) {
	onHost(t, func(h *host) {
		for _, test := range []struct {
			allowed auth.Permissions
			err     string
		}{
			{auth.Permissions{}, ""},
			{auth.Permissions{NoPTY: true, Forward: permit.None()}, ""},
			{auth.Permissions{Command: "internal-sftp -R"}, ""},
			{auth.Permissions{Command: "date"}, "forces a command"},
			{auth.Permissions{SFTP: auth.NoSFTP}, "no Subsystem sftp"},
			{auth.Permissions{Enrolled: &auth.Enrolled{Kind: auth.KindShare, Name: "g", Session: strings.Repeat("0", 32)}}, "guest"},
		} {
			err := h.side(h.allowing(test.allowed), &wire.Attach{Side: wire.SideFiles})
			if refused, _ := err.(*wire.Error); (err == nil) != (test.err == "") || err != nil && (refused == nil || !strings.Contains(refused.Text, test.err)) {
				h.t.Errorf("%+v: %v", test.allowed, err)
			}
		}
		if err := h.side(h.by(), &wire.Attach{Side: 99}); err == nil || !strings.Contains(err.Error(), "does not know side 99") {
			h.t.Errorf("another kind of side pipe: %v", err)
		}
		c, err := h.server.client(h.allowing(auth.Permissions{Command: "internal-sftp -R -l INFO", SFTP: "internal-sftp -u 077"}))
		if err != nil {
			h.t.Fatal(err)
		}
		launch, err := c.launch(&privsep.Attach{Side: wire.SideFiles}, "files")
		if err != nil || launch.Side != wire.SideFiles || launch.Command != "qtd sftp -R" || !slices.Equal(launch.Env, []string{"HOME=", "USER=anna"}) {
			h.t.Errorf("%+v, %v", launch, err)
		}
		if _, err := c.launch(&privsep.Attach{Command: "date"}, "1"); err == nil || !strings.Contains(err.Error(), "only move files") {
			h.t.Errorf("a session of a login that may only move files: %v", err)
		}
	})
}

// A session has an ssh agent if its client asks for one and the login may offer it.
func TestLaunchWithAgent(t *testing.T) {
	onHost(t, func(h *host) {
		for _, asked := range []bool{false, true} {
			for _, refused := range []bool{false, true} {
				c, err := h.server.client(h.allowing(auth.Permissions{Forward: permit.Rules{NoAgent: refused}}))
				if err != nil {
					h.t.Fatal(err)
				}
				launch, err := c.launch(&privsep.Attach{PTY: true, Agent: asked}, "1")
				if err != nil || launch.Agent != (asked && !refused) {
					h.t.Errorf("asked %t, refused %t: %+v, %v", asked, refused, launch, err)
				}
				if side, err := c.launch(&privsep.Attach{Side: wire.SideFiles, Agent: asked}, "files"); err != nil || side.Agent {
					h.t.Errorf("a side pipe: %+v, %v", side, err)
				}
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
			Side: wire.SideForward, PTY: true, Dir: "", Command: "sh", Env: [][2]string{{permit.Variable, "{}"}, {"LD_PRELOAD", "/x"}},
		}, "forward")
		if err != nil {
			h.t.Fatal(err)
		}
		rules := permit.Rules{NoDialSocket: true, NoListenSocket: true, Dials: allowed.Forward.Dials} // it has a command
		want := []string{"HOME=", "USER=anna", permit.Variable + "=" + rules.Encode()}
		if launch.Side != wire.SideForward || launch.PTY || launch.Persist != nil || !slices.Equal(launch.Env, want) || !slices.Equal(launch.Argv, []string{"qtd", "forward"}) {
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
