package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxKnocked bounds how many addresses of a server are connected to.
	maxKnocked = 4
)

// unanswered returns a LoginError if nothing answers at the addresses of sshd, not even with a refusal. ssh alone waits
// for 15 s then: it cannot tell such a host from one whose packets were lost.
func (s *SSH) unanswered(ctx context.Context) *LoginError {
	if s.Addresses == nil {
		return nil
	}
	select {
	case <-time.After(KnockAfter):
	case <-ctx.Done():
		return nil
	}
	addrs, err := s.Addresses(ctx)
	if err != nil || len(addrs) == 0 {
		return nil // ssh says what is wrong
	}
	if !areSilent(ctx, addrs[:min(len(addrs), maxKnocked)]) {
		return nil
	}
	first := addrs[0]
	return &LoginError{s.Host, fmt.Sprintf("connect to host %v port %d: Connection timed out", first.Addr(), first.Port())}
}

// areSilent reports whether no address answers by TCP within knockTime.
func areSilent(ctx context.Context, addrs []netip.AddrPort) bool {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithTimeout(ctx, knockTime)
	defer cancel()
	answered := make(chan struct{}, 1)
	again := time.NewTicker(knockAgain)
	defer again.Stop()
	for {
		for _, a := range addrs {
			wg.Go(func() {
				c, err := new(net.Dialer).DialContext(ctx, "tcp", a.String())
				if err == nil {
					c.Close()
				}
				// A connection may time out a moment before ctx does.
				var network net.Error
				if err == nil || ctx.Err() == nil && !(errors.As(err, &network) && network.Timeout()) {
					select {
					case answered <- struct{}{}:
					default:
					}
				}
			})
		}
		select {
		case <-answered:
			return false
		case <-ctx.Done():
			select {
			case <-answered:
				return false
			default:
				return errors.Is(ctx.Err(), context.DeadlineExceeded)
			}
		case <-again.C:
		}
	}
}
