package systemd

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lingerDir has a file for each account whose service manager runs without a login.
const lingerDir = "/var/lib/systemd/linger"

// lingers reports whether the service manager of an account runs without a login.
func lingers(name string) bool {
	_, err := os.Lstat(filepath.Join(lingerDir, name))
	return err == nil && filepath.IsLocal(name)
}

func accountName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.Username
}

// A Login says to which login a process belongs, as the system's login manager sees it. The zero
// value is none.
type Login struct {
	UID     int  // of the account that has logged in
	Manager bool // it belongs to the service manager of the account, not to one login
}

// loginGroup is the path of the control groups of logins.
var loginGroup = regexp.MustCompile(`^/user\.slice/user-([0-9]+)\.slice/(session-|user@)`)

// OwnLogin returns the login that this process belongs to, and whether there is one.
func OwnLogin() (Login, bool) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Login{}, false
	}
	return parseLogin(string(groups))
}

// parseLogin takes the login from /proc/PID/cgroup, cgroups(7).
func parseLogin(groups string) (Login, bool) {
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[1] != "" && f[1] != "name=systemd" {
			continue
		}
		if m := loginGroup.FindStringSubmatch(f[2]); m != nil {
			if uid, err := strconv.ParseUint(m[1], 10, 32); err == nil {
				return Login{UID: int(uid), Manager: m[2] == "user@"}, true
			}
		}
	}
	return Login{}, false
}

// EndsAtLogout returns, in one line, why sessions that this process has started end when its
// account logs out, and what to do. It is empty if they live on. It takes at most seconds.
func EndsAtLogout(ctx context.Context) string {
	login, ok := OwnLogin()
	if !ok || FindScopes() != nil {
		return ""
	}
	name := accountName(login.UID)
	why := "KillUserProcesses=yes"
	switch {
	case login.Manager && !lingers(name):
		why = "the service manager of the account ends then"
	case login.Manager || !killsAtLogout(ctx, name):
		return ""
	}
	todo := "run loginctl enable-linger"
	if uid := os.Geteuid(); uid == 0 {
		todo = "run qtd as a service of the system"
	} else if own := accountName(uid); own != name {
		todo = "log in as " + own + ", and run loginctl enable-linger"
	}
	return "sessions end when " + name + " logs out (" + why + "): " + todo
}

// killsAtLogout reports whether the login manager ends all processes of a login with it. It is
// false if there is no login manager.
func killsAtLogout(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, _, err := dial(ctx, "/run/dbus/system_bus_socket")
	if err != nil {
		return false
	}
	c, err := authenticate(ctx, conn, nil)
	if err != nil {
		return false
	}
	defer c.Close()
	if c.Hello() != nil {
		return false
	}
	var kills bool
	var only, except []string
	for property, value := range map[string]any{
		"KillUserProcesses": &kills, "KillOnlyUsers": &only, "KillExcludeUsers": &except,
	} {
		err := c.Object("org.freedesktop.login1", "/org/freedesktop/login1").CallWithContext(ctx,
			"org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.login1.Manager", property).Store(value)
		if err != nil {
			return false
		}
	}
	return kills && !slices.Contains(except, name) && (len(only) == 0 || slices.Contains(only, name))
}
