package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"
)

const (
	// TicketLife is how long a ticket is good for: time for ssh to hand it
	// over and for the client to dial.
	TicketLife = 60 * time.Second

	ticketSize = 32

	// maxTickets is how many of one account wait to be used.
	maxTickets = 64
)

// ErrTicket means that a ticket is not good: never given out, used, or too old.
var ErrTicket = errors.New("ticket is not good")

// Tickets are what a daemon has given out to the accounts of its machine. They
// live in memory only. It is safe for concurrent use.
type Tickets struct {
	mu     sync.Mutex
	issued map[[sha256.Size]byte]ticket // by hash, so that no look-up compares secrets
}

type ticket struct {
	uid   uint32
	until time.Time
}

// Issue returns a new ticket for an account. It fails if too many of its are
// waiting to be used.
func (t *Tickets) Issue(now time.Time, uid uint32) ([]byte, error) {
	secret := make([]byte, ticketSize)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := 0
	for hash, issued := range t.issued {
		if !now.Before(issued.until) {
			delete(t.issued, hash)
		} else if issued.uid == uid {
			waiting++
		}
	}
	if waiting >= maxTickets {
		return nil, errors.New("too many tickets are waiting to be used")
	}
	if t.issued == nil {
		t.issued = make(map[[sha256.Size]byte]ticket)
	}
	t.issued[sha256.Sum256(secret)] = ticket{uid: uid, until: now.Add(TicketLife)}
	return secret, nil
}

// Redeem returns the account that a ticket was given out for. The ticket is
// used up, good or not.
func (t *Tickets) Redeem(now time.Time, secret []byte) (uint32, error) {
	hash := sha256.Sum256(secret)
	t.mu.Lock()
	defer t.mu.Unlock()
	issued, ok := t.issued[hash]
	delete(t.issued, hash)
	if !ok || !now.Before(issued.until) {
		return 0, ErrTicket
	}
	return issued.uid, nil
}
