package account

import (
	"os"
)

// lookup reads /etc/passwd, and asks the name service where it does not have
// the account: it knows directory services too. key is a name or a number.
func lookup(key string, match func(*Account) bool) (*Account, error) {
	if b, err := os.ReadFile("/etc/passwd"); err == nil {
		if a := scanPasswd(b, match); a != nil {
			return a, nil
		}
	}
	b, err := output("getent", "passwd", "--", key)
	if err != nil {
		return nil, ErrUnknown // it exits with 2 for that, and with others where it is missing
	}
	if a := scanPasswd(b, match); a != nil {
		return a, nil
	}
	return nil, ErrUnknown
}
