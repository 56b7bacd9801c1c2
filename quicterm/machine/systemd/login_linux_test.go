package systemd

import "testing"

// Logins are known by their control groups, in both versions of these.
func TestParseLogin(t *testing.T) {
	for _, c := range []struct {
		why, groups string
		want        Login
		ok          bool
	}{
		{"a login", "0::/user.slice/user-1000.slice/session-3.scope\n", Login{UID: 1000}, true},
		{"a login, version 1", "12:pids:/user.slice/user-5.slice/session-1.scope\n1:name=systemd:/user.slice/user-1000.slice/session-c3.scope\n0::/\n", Login{UID: 1000}, true},
		{"a desktop", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n", Login{UID: 1000, Manager: true}, true},
		{"a service", "0::/system.slice/qtd.service\n", Login{}, false},
		{"a session of ours", "0::/quicterm.slice/quicterm-1000.slice/qt-01234567.scope\n", Login{}, false},
		{"a container", "0::/\n", Login{}, false},
		{"a controller's group only", "4:memory:/user.slice/user-1000.slice/session-3.scope\n", Login{}, false},
		{"a number that is too large", "0::/user.slice/user-99999999999999999999.slice/session-3.scope\n", Login{}, false},
		{"nothing", "", Login{}, false},
	} {
		if got, ok := parseLogin(c.groups); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.why, got, ok, c.want, c.ok)
		}
	}
}
