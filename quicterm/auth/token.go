package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// tokenLifetime is how long a token is valid: enough for ssh to deliver it and for the client to dial.
	tokenLifetime = 60 * time.Second

	tokenSize = 32

	// maxTokens bounds the unused tokens of an account.
	maxTokens = 64
)

// errToken is the error of a token that was never issued, was used, or is too old.
var errToken = errors.New("token is not valid")

// Tokens are the one-time tokens that a daemon has issued. They are in memory only. The
// zero value has none. It is safe for concurrent use.
type Tokens struct {
	mu     sync.Mutex
	issued map[[sha256.Size]byte]token // by hash: the time of a lookup tells nothing about a token
}

type token struct {
	Grantee
	until time.Time
}

// A Grantee is whom a token is for.
type Grantee struct {
	UID      uint32
	Reported string // for the log: by what sshd has let the client in, as a process of the account says
}

// Issue returns a new token for an account. It fails if the account has maxTokens unused ones.
func (t *Tokens) Issue(now time.Time, g Grantee) ([]byte, error) {
	secret := make([]byte, tokenSize)
	rand.Read(secret) // never fails
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := 0
	for hash, issued := range t.issued {
		if !now.Before(issued.until) {
			delete(t.issued, hash)
		} else if issued.UID == g.UID {
			waiting++
		}
	}
	if waiting >= maxTokens {
		return nil, fmt.Errorf("the account has %d unused tokens: try again in a minute", maxTokens)
	}
	if t.issued == nil {
		t.issued = make(map[[sha256.Size]byte]token)
	}
	t.issued[sha256.Sum256(secret)] = token{g, now.Add(tokenLifetime)}
	return secret, nil
}

// Redeem returns whom a token was issued for. It uses the token up, valid or not.
func (t *Tokens) Redeem(now time.Time, secret []byte) (Grantee, error) {
	hash := sha256.Sum256(secret)
	t.mu.Lock()
	defer t.mu.Unlock()
	issued, ok := t.issued[hash]
	delete(t.issued, hash)
	if !ok || !now.Before(issued.until) {
		return Grantee{}, errToken
	}
	return issued.Grantee, nil
}
