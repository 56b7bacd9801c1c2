package auth

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTicket(t *testing.T) {
	for _, test := range []struct {
		name string
		age  time.Duration
		want error
	}{
		{"at once", 0, nil},
		{"just in time", TicketLife - 1, nil},
		{"too late", TicketLife, ErrTicket},
		{"much too late", time.Hour, ErrTicket},
		{"the clock was set back", -time.Hour, nil},
	} {
		var tickets Tickets
		ticket := must(tickets.Issue(today, 1000))
		if uid, err := tickets.Redeem(today.Add(test.age), ticket); err != test.want || err == nil && uid != 1000 {
			t.Errorf("%s: got %d, %v; want user id 1000 or %v", test.name, uid, err, test.want)
		}
		if _, err := tickets.Redeem(today, ticket); err != ErrTicket {
			t.Errorf("%s, and once more: got %v, want %v", test.name, err, ErrTicket)
		}
	}
}

func TestWrongTicket(t *testing.T) {
	var tickets Tickets
	if _, err := tickets.Redeem(today, nil); err != ErrTicket {
		t.Errorf("before the first is given out: got %v, want %v", err, ErrTicket)
	}
	mine, yours := must(tickets.Issue(today, 1000)), must(tickets.Issue(today, 1001))
	if len(mine) != ticketSize || bytes.Equal(mine, yours) {
		t.Fatalf("tickets %x and %x, want two of %d bytes", mine, yours, ticketSize)
	}
	wrong := [][]byte{nil, {}, make([]byte, ticketSize), append(bytes.Clone(mine), 0), bytes.Repeat(mine, 1000)}
	for i := range mine {
		changed := bytes.Clone(mine)
		changed[i] ^= 1
		wrong = append(wrong, mine[:i], changed)
	}
	for _, secret := range wrong {
		if _, err := tickets.Redeem(today, secret); err != ErrTicket {
			t.Errorf("%x: got %v, want %v", secret, err, ErrTicket)
		}
	}
	if uid, err := tickets.Redeem(today, yours); err != nil || uid != 1001 {
		t.Errorf("another's ticket: got %d, %v; want user id 1001", uid, err)
	}
	if uid, err := tickets.Redeem(today, mine); err != nil || uid != 1000 {
		t.Errorf("after the wrong ones: got %d, %v; want user id 1000", uid, err)
	}
}

// What is kept is bounded, and what has expired makes room.
func TestTooManyTickets(t *testing.T) {
	var tickets Tickets
	first := must(tickets.Issue(today, 1000))
	later := today.Add(TicketLife / 2)
	for range maxTickets - 1 {
		must(tickets.Issue(later, 1000))
	}
	if _, err := tickets.Issue(later, 1000); err == nil || errors.Is(err, ErrTicket) {
		t.Errorf("got %v, want that there are too many", err)
	}
	must(tickets.Redeem(later, first))
	must(tickets.Issue(later, 1000))
	if _, err := tickets.Issue(later, 1000); err == nil {
		t.Error("one used ticket made room for two")
	}
	must(tickets.Issue(later.Add(TicketLife), 1000))
	if got := len(tickets.issued); got != 1 {
		t.Errorf("%d tickets are kept after the others have expired, want 1", got)
	}
}

// Of many who come with one ticket at the same time, one gets in.
func TestTicketRaced(t *testing.T) {
	var tickets Tickets
	ticket := must(tickets.Issue(today, 1000))
	var in atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := tickets.Redeem(today, ticket); err == nil {
				in.Add(1)
			}
		})
	}
	wg.Wait()
	if in.Load() != 1 {
		t.Errorf("%d got in, want 1", in.Load())
	}
}
