package account

import "time"

// Expired returns false: on macOS accounts have no expiration date.
func (a *Account) Expired(time.Time) (bool, error) { return false, nil }

// Locked returns false: on macOS the directory service alone knows passwords.
func (a *Account) Locked() (bool, error) { return false, nil }
