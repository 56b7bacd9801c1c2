package account

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// Expired reports whether the account's expiration date has passed (shadow(5),
// usermod -e). Only root can read that; for others it returns false.
func (a *Account) Expired(now time.Time) (bool, error) {
	lines, err := readShadow("/etc/shadow")
	return expired(lines, a.Name, now), err
}

// Locked reports whether the account's password is locked (passwd -l). Only root can read that;
// for others it returns false.
func (a *Account) Locked() (bool, error) {
	lines, err := readShadow("/etc/shadow")
	return strings.HasPrefix(shadowField(lines, a.Name, 1), "!"), err
}

// readShadow returns the lines of a file of shadow(5), or nothing if this process may not read it
// or a system does without it. If it is not read for another reason, that says nothing about an account.
func readShadow(file string) (string, error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return "", nil
	}
	return string(b), err
}

// expired reports whether the lines of shadow(5) say that an account has expired.
func expired(shadow, name string, now time.Time) bool {
	day, err := strconv.ParseInt(shadowField(shadow, name, 7), 10, 64) // the first one without logins, since 1970
	return err == nil && day >= 0 && now.Unix()/(24*60*60) >= day
}

// shadowField returns a field of an account's line of shadow(5), or nothing.
func shadowField(shadow, name string, field int) string {
	for line := range strings.Lines(shadow) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if f[0] == name && len(f) > field {
			return f[field]
		}
	}
	return ""
}
