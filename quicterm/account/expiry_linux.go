package account

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Expired reports whether the account's expiration date has passed (shadow(5),
// usermod -e). Only root can read that; for others it returns false.
func (a *Account) Expired(now time.Time) bool {
	b, err := os.ReadFile("/etc/shadow")
	return err == nil && expired(string(b), a.Name, now)
}

// expired reports whether the lines of shadow(5) say that an account has expired.
func expired(shadow, name string, now time.Time) bool {
	const dayField = 7 // the first day without logins, since 1970
	for line := range strings.Lines(shadow) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if f[0] != name || len(f) <= dayField {
			continue
		}
		day, err := strconv.ParseInt(f[dayField], 10, 64)
		return err == nil && day >= 0 && now.Unix()/(24*60*60) >= day
	}
	return false
}
