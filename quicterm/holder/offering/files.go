// Package offering offers files of this account to the client at the keyboard of the session in which it is called, for
// qt get and qtd get. It knows no holder but the one of that session.
package offering

import (
	"context"
	"fmt"
)

// The texts of both commands.
const (
	Use   = "get file..."
	Short = "Offer files to the client of the session in which it runs"
	Long  = `Offer files to the client at the keyboard of the session in which it runs. Whoever is there
saves them by ~<, within a minute. It says what has come of each, and exits with 1 if one was
not saved, or the client was away for two minutes meanwhile.`
)

// Files offers one file after the other, and says what comes of each. It reports whether all were saved.
func Files(ctx context.Context, names []string, say func(line string)) (all bool) {
	all = true
	for _, name := range names {
		if err := offer(ctx, name, func() { say(name + " is offered: ~< saves it") }); err != nil {
			say(fmt.Sprintf("%s: %v", name, err))
			all = false
			continue
		}
		say(name + ": saved")
	}
	return all
}
