package account

import "time"

// Expired returns false: on macOS accounts have no expiration date.
func (a *Account) Expired(time.Time) bool { return false }
