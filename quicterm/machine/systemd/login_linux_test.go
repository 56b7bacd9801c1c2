package systemd

import "testing"

// Logins are known by their control groups, in both versions of these.
func TestParseLogin(t *testing.T) {
	for _, c := range []struct {
		why, groups string
		want        login
	}{
		{"a login", "0::/user.slice/user-1000.slice/session-3.scope\n", login{uid: "1000"}},
		{"a login, version 1", "12:pids:/user.slice/user-5.slice/session-1.scope\n1:name=systemd:/user.slice/user-1000.slice/session-c3.scope\n0::/\n", login{uid: "1000"}},
		{"a desktop", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n", login{"1000", true}},
		{"a service", "0::/system.slice/qtd.service\n", login{}},
		{"a session of ours", "0::/quicterm.slice/quicterm-1000.slice/qt-01234567.scope\n", login{}},
		{"a container", "0::/\n", login{}},
		{"a controller's group only", "4:memory:/user.slice/user-1000.slice/session-3.scope\n", login{}},
		{"a number that is too large", "0::/user.slice/user-99999999999999999999.slice/session-3.scope\n", login{}},
		{"nothing", "", login{}},
	} {
		if got := parseLogin(c.groups); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.why, got, c.want)
		}
	}
}
