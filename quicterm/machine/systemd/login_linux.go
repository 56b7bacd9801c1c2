package systemd

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// lingerDir has a file for each account whose service manager runs without a login.
const lingerDir = "/var/lib/systemd/linger"

// lingers reports whether the service manager of an account runs without a login.
func lingers(name string) bool {
	_, err := os.Lstat(filepath.Join(lingerDir, name))
	return err == nil && filepath.IsLocal(name)
}

func accountName(uid string) string {
	u, err := user.LookupId(uid)
	if err != nil {
		return ""
	}
	return u.Username
}

// A login says to which login a process belongs, as the system's login manager sees it. The zero value is none.
type login struct {
	uid     string // of the account that has logged in
	manager bool   // it belongs to the service manager of the account, not to one login
}

// loginGroup matches the control group of a login in /proc/PID/cgroup, cgroups(7).
const loginGroup = `(?m)^\d+:(?:name=systemd)?:/user\.slice/user-([0-9]{1,10})\.slice/(session-|user@)`

// InLogin reports whether this process belongs to a login.
func InLogin() bool { return ownLogin() != login{} }

func ownLogin() login {
	groups, _ := os.ReadFile("/proc/self/cgroup")
	return parseLogin(string(groups))
}

func parseLogin(groups string) login {
	if m := regexp.MustCompile(loginGroup).FindStringSubmatch(groups); m != nil {
		return login{uid: m[1], manager: m[2] == "user@"}
	}
	return login{}
}

// EndsAtLogout returns, in one line, why sessions that this process has started end when its
// account logs out, and what to do. It is empty if they live on. It takes at most seconds.
func EndsAtLogout(ctx context.Context) string {
	in := ownLogin()
	if in == (login{}) || FindScopes() != nil {
		return ""
	}
	name := accountName(in.uid)
	why := "KillUserProcesses=yes"
	switch {
	case in.manager && !lingers(name):
		why = "the service manager of the account ends then"
	case in.manager || !killsAtLogout(ctx, name):
		return ""
	}
	todo := "run loginctl enable-linger"
	if uid := os.Geteuid(); uid == 0 {
		todo = "run qtd as a service of the system"
	} else if own := accountName(strconv.Itoa(uid)); own != name {
		todo = "log in as " + own + ", and run loginctl enable-linger"
	}
	return "sessions end when " + name + " logs out (" + why + "): " + todo
}

// killsAtLogout reports whether the login manager ends all processes of a login with it. It is
// false if there is no login manager.
func killsAtLogout(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime/5) // a client waits
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
