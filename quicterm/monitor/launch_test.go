//go:build linux || darwin

package monitor

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A client that is not ours cannot give a session more environment variables than ours sends.
func TestEnvironmentIsBounded(t *testing.T) {
	onHost(t, func(h *host) {
		value := strings.Repeat("x", wire.MaxEnvBytes-len("LC_A="))
		for what, test := range map[string]struct {
			env  [][2]string
			want string
		}{
			"one more":          {make([][2]string, wire.MaxEnv+1), "65 environment variables"},
			"a byte more":       {[][2]string{{"LC_AB", value}}, "32769 bytes of environment variables"},
			"as many as it may": {append(make([][2]string, wire.MaxEnv-1), [2]string{"LC_A", value[wire.MaxEnv-1:]}), ""},
		} {
			request := h.request(&wire.Attach{PTY: true})
			request.Env = test.env
			a, err := h.server.Attach(h.t.Context(), request)
			if err == nil {
				a.Carrier.Close()
			}
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%s: %v, want %q", what, err, test.want)
			}
		}
	})
}

// A zero byte would make two texts of one, in what starts a program: a variable of somebody else's choice.
func TestZeroBytes(t *testing.T) {
	onHost(t, func(h *host) {
		const hidden = "\x00LD_PRELOAD=/tmp/x"
		var launched []string
		holders := holdertest.New(func(launch *wire.Launch) holder.Program {
			launched = append(launched, slices.Concat(launch.Argv, launch.Env)...)
			return programtest.NewEcho(launch.PTY)
		})
		h.setHolders(holders)
		defer holders.Wait()
		defer holders.Kill()
		for what, change := range map[string]func(*privsep.Attach){
			"command": func(r *privsep.Attach) { r.Command = "true" + hidden },
			"value":   func(r *privsep.Attach) { r.Env = [][2]string{{"LC_A", "b" + hidden}} },
			"name":    func(r *privsep.Attach) { r.Env = [][2]string{{"LC_A" + hidden, ""}} },
			"session": func(r *privsep.Attach) { r.Session = "a" + hidden },
			"zone":    func(r *privsep.Attach) { r.By.Path.Client = netip.MustParseAddrPort("[fe80::1%0" + hidden + "]:1") },
		} {
			request := h.request(&wire.Attach{PTY: true})
			change(request)
			a, err := h.server.Attach(h.t.Context(), request)
			if err != nil {
				continue
			}
			a.Carrier.Close()
			if i := slices.IndexFunc(launched, func(s string) bool { return strings.Contains(s, "\x00") }); i >= 0 {
				t.Errorf("%s: a program is given %q", what, launched[i])
			}
		}
		if len(launched) == 0 {
			t.Error("no session was started, also none without what is refused")
		}
	})
}

// The process of a session gets the client's terminfo entry as it came, if that is short, and no command is forced.
func TestTerminfoIsBounded(t *testing.T) {
	onHost(t, func(h *host) {
		entry := bytes.Repeat([]byte{1}, wire.MaxTerminfo)
		for _, test := range []struct {
			allowed  auth.Permissions
			terminfo []byte
			want     []byte
		}{
			{auth.Permissions{}, entry, entry},
			{auth.Permissions{}, append(entry, 1), nil},
			{auth.Permissions{Command: "date"}, entry, nil},
		} {
			c, err := h.server.client(h.allowing(test.allowed))
			if err != nil {
				h.t.Fatal(err)
			}
			launch, err := c.launch(&privsep.Attach{PTY: true, Terminfo: test.terminfo}, "1")
			if err != nil || !bytes.Equal(launch.Terminfo, test.want) {
				h.t.Errorf("%+v: %d bytes of %d, %v", test.allowed, len(launch.Terminfo), len(test.terminfo), err)
			}
		}
	})
}
