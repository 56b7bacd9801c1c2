//go:build linux || darwin

package offering

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/files"
)

// A save ends when the client is away for long, or says nothing for very long, and not before.
func TestSaveIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		clients  func(at time.Duration) []int64
		min, max time.Duration
	}{
		"is there": {func(time.Duration) []int64 { return []int64{1, 2} }, saveTime, saveTime + time.Minute},
		"another comes": {func(at time.Duration) []int64 {
			if at < time.Minute {
				return []int64{1}
			}
			return []int64{2}
		}, awayTime + 50*time.Second, awayTime + 70*time.Second},
		"roams": {func(at time.Duration) []int64 {
			if at%awayTime > time.Minute && at < time.Hour || at > 2*time.Hour {
				return nil
			}
			return []int64{1}
		}, 2*time.Hour + awayTime - 10*time.Second, 2*time.Hour + awayTime + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			link := filepath.Join(t.TempDir(), "1")
			if err := os.WriteFile(link+files.OfferSaving, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				again := func() { t.Error("it is offered again while it is saved") }
				err := await(context.Background(), link, again, func() []int64 { return c.clients(time.Since(began)) })
				if took := time.Since(began); err == nil || !strings.HasPrefix(err.Error(), "the client left") ||
					took < c.min || took > c.max {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}
