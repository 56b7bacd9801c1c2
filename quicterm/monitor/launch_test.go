//go:build linux || darwin

package monitor

import (
	"strings"
	"testing"

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
