package auth

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestToken(t *testing.T) {
	for _, test := range []struct {
		name string
		age  time.Duration
		want error
	}{
		{"at once", 0, nil},
		{"just in time", tokenLifetime - 1, nil},
		{"too late", tokenLifetime, errToken},
		{"much too late", time.Hour, errToken},
		{"the clock was set back", -time.Hour, nil},
	} {
		var tokens Tokens
		token := must(tokens.Issue(today, Grantee{UID: 1000}))
		if g, err := tokens.Redeem(today.Add(test.age), token); err != test.want || err == nil && g.UID != 1000 {
			t.Errorf("%s: got %d, %v; want user id 1000 or %v", test.name, g.UID, err, test.want)
		}
		if _, err := tokens.Redeem(today, token); err != errToken {
			t.Errorf("%s, and once more: got %v, want %v", test.name, err, errToken)
		}
	}
}

func TestWrongToken(t *testing.T) {
	var tokens Tokens
	if _, err := tokens.Redeem(today, nil); err != errToken {
		t.Errorf("before the first is issued: got %v, want %v", err, errToken)
	}
	mine, yours := must(tokens.Issue(today, Grantee{UID: 1000})), must(tokens.Issue(today, Grantee{UID: 1001}))
	if len(mine) != tokenSize || bytes.Equal(mine, yours) {
		t.Fatalf("tokens %x and %x, want two of %d bytes", mine, yours, tokenSize)
	}
	wrong := [][]byte{nil, {}, make([]byte, tokenSize), append(bytes.Clone(mine), 0), bytes.Repeat(mine, 1000)}
	for i := range mine {
		changed := bytes.Clone(mine)
		changed[i] ^= 1
		wrong = append(wrong, mine[:i], changed)
	}
	for _, secret := range wrong {
		if _, err := tokens.Redeem(today, secret); err != errToken {
			t.Errorf("%x: got %v, want %v", secret, err, errToken)
		}
	}
	if g, err := tokens.Redeem(today, yours); err != nil || g.UID != 1001 {
		t.Errorf("another's token: got %d, %v; want user id 1001", g.UID, err)
	}
	if g, err := tokens.Redeem(today, mine); err != nil || g.UID != 1000 {
		t.Errorf("after the wrong ones: got %d, %v; want user id 1000", g.UID, err)
	}
}

// The number of tokens is bounded, and expired ones do not count.
func TestTooManyTokens(t *testing.T) {
	var tokens Tokens
	first := must(tokens.Issue(today, Grantee{UID: 1000}))
	later := today.Add(tokenLifetime / 2)
	for range maxTokens - 1 {
		must(tokens.Issue(later, Grantee{UID: 1000}))
	}
	if _, err := tokens.Issue(later, Grantee{UID: 1000}); err == nil || errors.Is(err, errToken) {
		t.Errorf("got %v, want an error that there are too many", err)
	}
	must(tokens.Redeem(later, first))
	must(tokens.Issue(later, Grantee{UID: 1000}))
	if _, err := tokens.Issue(later, Grantee{UID: 1000}); err == nil {
		t.Error("one used token made room for two")
	}
	must(tokens.Issue(later.Add(tokenLifetime), Grantee{UID: 1000}))
	if got := len(tokens.issued); got != 1 {
		t.Errorf("%d tokens are kept after the others have expired, want 1", got)
	}
}

// Of many clients that redeem one token at once, one succeeds.
func TestTokenRaced(t *testing.T) {
	var tokens Tokens
	token := must(tokens.Issue(today, Grantee{UID: 1000}))
	var in atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := tokens.Redeem(today, token); err == nil {
				in.Add(1)
			}
		})
	}
	wg.Wait()
	if in.Load() != 1 {
		t.Errorf("%d succeeded, want 1", in.Load())
	}
}
