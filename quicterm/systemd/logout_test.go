//go:build linux || darwin

package systemd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAtLogout(t *testing.T) {
	const (
		login   = "1:name=systemd:/user.slice/user-1000.slice/session-3.scope\n0::/user.slice/user-1000.slice/session-3.scope\n"
		manager = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/qtd.service\n"
		service = "0::/system.slice/qtd.service\n"
		kills   = "[Login]\nKillUserProcesses=yes\n"
	)
	for _, test := range []struct {
		why, cgroup, main, drop string
		linger                  bool
		want                    Fate
	}{
		{"a service of the machine", service, kills, "", false, Stays},
		{"a login, by default", login, "[Login]\n#KillUserProcesses=yes\n", "", false, Stays},
		{"a login that takes all with it", login, kills, "", false, EndsWithLogin},
		{"the same, set beside the main file", login, "", kills, false, EndsWithLogin},
		{"another file takes it back", login, kills, "[Login]\nKillUserProcesses=no\n", false, Stays},
		{"the account lingers", login, kills, "", true, Stays},
		{"the account is an exception", login, kills + "KillExcludeUsers=root ann\n", "", false, Stays},
		{"it is for others only", login, kills + "KillOnlyUsers=bob\n", "", false, Stays},
		{"the account's manager", manager, "", "", false, EndsWithoutLinger},
		{"that lingers", manager, "", "", true, Stays},
		{"a container", "0::/\n", kills, "", false, FateUnknown},
	} {
		root := t.TempDir()
		write := func(file, content string) {
			file = filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("proc/self/cgroup", test.cgroup)
		write("etc/systemd/logind.conf", test.main)
		write("usr/lib/systemd/logind.conf.d/10-x.conf", test.drop)
		if test.linger {
			write("var/lib/systemd/linger/ann", "")
		}
		if got, err := atLogout(root, 1000, "ann"); got != test.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", test.why, got, err, test.want)
		}
	}
}
