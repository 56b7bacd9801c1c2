//go:build linux || darwin

package monitor

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/account"
	"github.com/quicterm/quicterm/quicterm/holder"
	"github.com/quicterm/quicterm/quicterm/pam"
)

// refindTime is how long it counts that su does not work: an administrator may mend it.
const refindTime = time.Minute

// A suFinder finds the su that opens sessions of PAM.
type suFinder struct {
	setting func() string // login

	mu     sync.Mutex
	path   string
	reason error // why there is none
	at     time.Time
}

// find returns the path of su, an error if sessions must not start without it, or neither.
func (f *suFinder) find(ctx context.Context, start func(*exec.Cmd) error, log *slog.Logger) (string, error) {
	setting := f.setting()
	if setting == "direct" {
		return "", nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" && (f.at.IsZero() || time.Since(f.at) > refindTime) {
		f.path, f.reason = pam.Find(ctx, start)
		if f.at = time.Now(); f.reason != nil {
			log.Warn("PAM cannot open sessions", "reason", f.reason)
		}
	}
	if f.path == "" && setting == "pam" {
		return "", fmt.Errorf("PAM cannot open sessions: %w", f.reason)
	}
	return f.path, nil
}

// howSessionsStart says whether PAM opens sessions, and with which su or why not. It is false if sessions
// cannot start, or only without PAM although that was not asked for.
func howSessionsStart(ctx context.Context, all bool, setting string, start func(*exec.Cmd) error) (words string, ok bool) {
	switch {
	case !all:
		return "sessions have the rights of this process: only root's daemon asks PAM", true
	case setting == "direct":
		return "sessions start without PAM", true
	}
	su, err := pam.Find(ctx, start)
	switch {
	case err == nil:
		return "PAM opens sessions, by " + su, true
	case setting == "pam":
		return fmt.Sprintf("PAM cannot open sessions, so none start: %v", err), false
	}
	return fmt.Sprintf("sessions start without PAM: %v", err), false
}

// loginOf returns the session of PAM for an account, or nil if there is to be none: only root's daemon
// for all accounts lets people in; another one has the rights of its account already.
func (p *processes) loginOf(ctx context.Context, a *account.Account) (*holder.Login, error) {
	if p.only != nil || p.su.setting == nil {
		return nil, nil
	}
	su, err := p.su.find(ctx, p.outside, p.log)
	if su == "" || err != nil {
		return nil, err
	}
	return &holder.Login{Su: su, Account: a.Name}, nil
}
