package account

import "time"

// Expired reports whether the administrator has let the account expire: here
// accounts do not.
func (a *Account) Expired(time.Time) bool { return false }
