//go:build linux || darwin

package access

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
)

// Verdicts are kept for a moment, as many bytes as they may have in all and for an account, and none of
// what takes many.
func TestVerdictsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v verdicts
		n := 0
		put := func(uid uint32, some ...auth.Verdict) (key [32]byte) {
			n++
			key = hashOffer(&privsep.Offer{Attempt: uint64(n)})
			v.put(key, uid, some)
			return key
		}
		refused := auth.Verdict{Refused: auth.ErrNotAuthorized, Where: "a file"}
		allowed := auth.Verdict{Allowed: &auth.Permissions{Command: "date", NoPTY: true, Environment: []string{"A=b"}}}
		first := put(1, refused, allowed)
		got := v.get(first)
		if len(got) != 2 || got[0].Allowed != nil || got[0].Refused.Error() != auth.ErrNotAuthorized.Error() ||
			got[1].Allowed.Command != "date" || got[1].Allowed.Environment[0] != "A=b" || got[1].Refused != nil {
			t.Fatalf("kept are %v", got)
		}
		for why, some := range map[string]auth.Verdict{
			"a long command":     {Allowed: &auth.Permissions{Command: strings.Repeat("x", maxAttempt)}},
			"a long environment": {Allowed: &auth.Permissions{Environment: []string{strings.Repeat("x", maxAttempt)}}},
			"a long refusal":     {Refused: fmt.Errorf("%s", strings.Repeat("x", maxAttempt))},
		} {
			if v.get(put(2, some)) != nil {
				t.Errorf("%s is kept", why)
			}
		}
		for range 2 * maxOfAccount / 100 {
			put(1, refused)
		}
		if v.get(put(1, refused)) != nil || v.of[1] > maxOfAccount || len(v.get(put(2, refused))) != 1 {
			t.Errorf("%d bytes of an account are kept", v.of[1])
		}
		for uid := range uint32(2 * maxKept / maxOfAccount) {
			for range maxOfAccount / 100 {
				put(100+uid, refused)
			}
		}
		if v.bytes > maxKept || v.get(put(7, refused)) != nil {
			t.Errorf("%d bytes are kept", v.bytes)
		}
		time.Sleep(verdictsTime)
		if v.get(first) != nil {
			t.Error("old verdicts count")
		}
		if v.get(put(1, refused)) == nil || len(v.kept) != 1 || len(v.order) != 1 || len(v.of) != 1 || v.bytes != v.of[1] {
			t.Errorf("%d old verdicts are kept", len(v.kept)-1)
		}
	})
}
