package account

import "time"

// Expired returns false: on macOS accounts have no expiration date.
func (a *Account) Expired(time.Time) bool { return false }

// Locked returns false: on macOS the directory service alone knows passwords.
func (a *Account) Locked() bool { return false }
