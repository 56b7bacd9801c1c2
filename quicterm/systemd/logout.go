//go:build linux || darwin

package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Fate is what the last logout of an account does to a process.
type Fate int

const (
	FateUnknown Fate = iota // there is no systemd, or it does not say
	Stays
	EndsWithoutLinger // it belongs to the account's own service manager
	EndsWithLogin     // it belongs to a login, and KillUserProcesses is on
)

// AtLogout returns what becomes of this process, and of those that it starts, when the account
// logs out everywhere.
func AtLogout(uid int, account string) (Fate, error) {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return FateUnknown, nil
	}
	return atLogout("/", uid, account)
}

// atLogout is AtLogout with the files below root.
func atLogout(root string, uid int, account string) (Fate, error) {
	b, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return FateUnknown, err
	}
	unit, known := unitOf(string(b))
	switch {
	case !known:
		return FateUnknown, nil
	case unit == "user@"+strconv.Itoa(uid)+".service":
		if linger, err := lingers(root, account); linger || err != nil {
			return Stays, err
		}
		return EndsWithoutLinger, nil
	case !strings.HasPrefix(unit, "session-"):
		return Stays, nil
	}
	settings, err := logindSettings(root)
	if err != nil {
		return FateUnknown, err
	}
	only, except := strings.Fields(settings["KillOnlyUsers"]), []string{"root"}
	if names, set := settings["KillExcludeUsers"]; set {
		except = strings.Fields(names)
	}
	if !isYes(settings["KillUserProcesses"]) || slices.Contains(except, account) ||
		len(only) > 0 && !slices.Contains(only, account) {
		return Stays, nil
	}
	if linger, err := lingers(root, account); linger || err != nil {
		return Stays, err
	}
	return EndsWithLogin, nil
}

// unitOf returns the unit of systemd that a process belongs to, by its file /proc/PID/cgroup: a
// scope of a login, the service manager of an account, or another one.
func unitOf(cgroups string) (unit string, known bool) {
	for line := range strings.Lines(cgroups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || fields[1] != "" && fields[1] != "name=systemd" || fields[2] == "/" {
			continue
		}
		for part := range strings.SplitSeq(fields[2], "/") {
			if strings.HasSuffix(part, ".service") || strings.HasSuffix(part, ".scope") {
				return part, true // the outermost: an account's manager has units within its own
			}
		}
	}
	return "", false
}

// lingers reports whether the service manager of an account runs without a login.
func lingers(root, account string) (bool, error) {
	_, err := os.Stat(filepath.Join(root, "var/lib/systemd/linger", account))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// logindSettings returns the settings in the section Login of logind.conf and of the files
// beside it (logind.conf(5)). Of one setting, the last value counts.
func logindSettings(root string) (map[string]string, error) {
	settings := make(map[string]string)
	dirs := []string{"usr/lib/systemd", "usr/local/lib/systemd", "run/systemd", "etc/systemd"}
	drops := make(map[string]string) // by name: a later directory replaces a file of an earlier one
	main := ""
	for _, dir := range dirs {
		if file := filepath.Join(root, dir, "logind.conf"); exists(file) {
			main = file
		}
		found, _ := filepath.Glob(filepath.Join(root, dir, "logind.conf.d/*.conf"))
		for _, file := range found {
			drops[filepath.Base(file)] = file
		}
	}
	files := []string{main}
	names := make([]string, 0, len(drops))
	for name := range drops {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		files = append(files, drops[name])
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("settings of logind: %w", err)
		}
		section := ""
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				section = line
			}
			name, value, ok := strings.Cut(line, "=")
			if ok && section == "[Login]" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
				settings[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
		}
	}
	return settings, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func isYes(value string) bool {
	return slices.Contains([]string{"1", "yes", "y", "true", "t", "on"}, strings.ToLower(value))
}
