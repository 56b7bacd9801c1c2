//go:build linux || darwin

package processes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quicterm/quicterm/quicterm/doctor"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
	"github.com/quicterm/quicterm/quicterm/machine/account"
	"github.com/quicterm/quicterm/quicterm/machine/command"
	"github.com/quicterm/quicterm/quicterm/machine/pam"
)

// refindTime is how long it counts that su does not work: an administrator may mend it, and sessions wait for
// that. A trial takes some 10 ms.
const refindTime = 5 * time.Second

// A suFinder finds the su that opens sessions of PAM.
type suFinder struct {
	trials singleflight.Group // of su

	mu     sync.Mutex
	path   string
	reason error // why there is none
	at     time.Time
}

// find returns the path of su, an error if sessions must not start without it, or neither.
func (f *suFinder) find(ctx context.Context, start func(*exec.Cmd) error, log *slog.Logger) (string, error) {
	if path, reason, ok := f.known(); ok {
		return decideLogin(path, reason)
	}
	// What is found is for all clients, of which the first may leave.
	trial := f.trials.DoChan("", func() (any, error) {
		if path, reason, ok := f.known(); ok { // since we have asked
			return path, reason
		}
		path, err := pam.Find(context.WithoutCancel(ctx), start)
		ended := make(chan struct{})
		command.WhenEnded(err, func() { close(ended) })
		<-ended // one that does not end is the only one
		_, absent := errors.AsType[pam.Absent](err)
		_, unusable := errors.AsType[pam.Unusable](err)
		if err != nil && !absent && !unusable {
			return "", err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case err == nil, f.reason != nil && f.reason.Error() == err.Error(): // which was logged
		case absent:
			log.Warn("sessions start without PAM", "reason", err)
		default:
			log.Error("PAM cannot open sessions, so none start", "error", err)
		}
		f.path, f.reason, f.at = path, err, time.Now()
		return path, err
	})
	select {
	case r := <-trial:
		return decideLogin(r.Val.(string), r.Err)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// known returns what the last trial has found, if that still counts.
func (f *suFinder) known() (path string, reason error, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.path, f.reason, !f.at.IsZero() && (f.reason == nil || time.Since(f.at) <= refindTime)
}

// decideLogin returns the path of su, an error if sessions must not start without it, or neither. path and
// err are from [pam.Find].
func decideLogin(path string, err error) (string, error) {
	if _, ok := errors.AsType[pam.Absent](err); ok {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("PAM cannot open sessions, so none start: %w", err)
	}
	return path, nil
}

// HowSessionsStart says whether PAM opens sessions, and with which su or why not; su is empty if it does not. The state
// is that sessions start as they should, without PAM or not at all.
func HowSessionsStart(
	ctx context.Context, all bool, start func(*exec.Cmd) error,
) (su, words string, state doctor.State) {
	if !all {
		return "", "sessions have the rights of this process: only root's daemon asks PAM", doctor.OK
	}
	path, reason := pam.Find(ctx, start)
	su, err := decideLogin(path, reason)
	switch {
	case err != nil:
		return "", err.Error(), doctor.Fail
	case su == "":
		return "", fmt.Sprintf("sessions start without PAM: %v", reason), doctor.Warn
	}
	return su, "PAM opens sessions, by " + su, doctor.OK
}

// loginOf returns the session of PAM for an account, or nil if there is to be none: only root's daemon
// for all accounts lets people in; another one has the rights of its account already.
func (p *Local) loginOf(ctx context.Context, a *account.Account) (*spawn.Login, error) {
	if p.Only != nil || !p.PAM {
		return nil, nil
	}
	su, err := p.su.find(ctx, p.Outside, p.Log)
	if su == "" || err != nil {
		return nil, err
	}
	return &spawn.Login{Su: su, Account: a.Name}, nil
}
