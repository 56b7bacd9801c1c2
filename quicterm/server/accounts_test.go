//go:build linux || darwin

package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier/quic"
	"github.com/quicterm/quicterm/quicterm/quota"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// An account has only so many connections. A new one takes the place of the one that was
// silent for longest, and of no other account's.
func TestConnectionsOfAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccounts(10)
		const limit = 10*connectionsPerSession + spareConnections
		var closed []int
		members := make([]*member, 2*limit)
		other := &member{Member: quota.Member[uint32]{Close: func() { t.Error("a connection of another account is closed") }}}
		a.join(2, other)
		for i := range members {
			members[i] = &member{Member: quota.Member[uint32]{Close: func() { closed = append(closed, i) }}}
			time.Sleep(time.Second)
			members[0].heard()
			a.join(1, members[i])
		}
		if len(closed) != limit || a.connections.Len(1) != limit || a.connections.Len(2) != 1 {
			t.Fatalf("%d connections are closed and %d left, want %d each", len(closed), a.connections.Len(1), limit)
		}
		for i, n := range closed {
			if n != i+1 {
				t.Fatalf("connection %d is closed, want %d, silent for longest", n, i+1)
			}
		}
		for _, m := range members {
			a.leave(m)
			a.leave(m)
		}
		if n := a.connections.Len(1); n != 0 {
			t.Errorf("%d connections count after their end", n)
		}
	})
}

// Receive windows do not grow before the login, and those of an account together by
// maxGrown at most.
func TestWindowsOfAccount(t *testing.T) {
	a := newAccounts(10)
	first, second, other := new(member), new(member), new(member)
	grow := func(why string, m *member, bytes uint64, want bool) {
		t.Helper()
		if got := a.grow(m, bytes); got != want {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
	grow("before the login", first, 1, false)
	a.join(1, first)
	a.join(1, second)
	a.join(2, other)
	grow("half", first, maxGrown/2, true)
	grow("too much", second, maxGrown/2+1, false)
	grow("the rest", second, maxGrown/2, true)
	grow("one byte more", first, 1, false)
	grow("another account", other, maxGrown, true)
	a.leave(first)
	grow("what the other one had", second, maxGrown/2, true)
	grow("after the end", first, 1, false)
}

// A connection whose window has grown, and that brings little since, is closed for another one that
// needs the window.
func TestWindowIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccounts(10)
		closed := make(chan string, 10)
		connect := func(name string, grown uint64) *member {
			m := &member{Member: quota.Member[uint32]{Close: func() { closed <- name }}}
			a.join(1, m)
			if grown > 0 && !a.grow(m, grown) {
				t.Errorf("%s has no window", name)
			}
			return m
		}
		connect("idle", maxGrown/2)
		busy := connect("busy", maxGrown/2)
		connect("small", 0)
		time.Sleep(bulkTime)
		other := connect("other", 0)
		if a.grow(other, 1) {
			t.Error("a window of one that was just used")
		}
		time.Sleep(time.Second)
		for range bulkBytes >> 10 {
			busy.brought(1 << 10)
		}
		if !a.grow(other, maxGrown/2) || a.grow(other, 1) {
			t.Error("not the window of the idle one")
		}
		synctest.Wait()
		if name := <-closed; name != "idle" || len(closed) > 0 {
			t.Errorf("%s is closed, and %d more", name, len(closed))
		}
	})
}

// A connection that is closed for others resumes: the session does not notice.
func TestClosedForOthers(t *testing.T) {
	onHost(t, func(h *host) {
		attached := h.attach()
		c, _, _ := h.dial(quic.Dial, false)
		h.send(c, resume(attached, 1))
		h.want("resume", c, wire.TypeResumed)
		for range connectionsPerSession*h.settings.MaxSessionsPerUser + spareConnections {
			time.Sleep(time.Millisecond)
			h.server.accounts.join(attached.UID, &member{Member: quota.Member[uint32]{Close: func() {}}})
		}
		<-c.Context().Done()
		again, _, _ := h.dial(quic.Dial, false)
		h.send(again, resume(attached, 2))
		h.want("resume again", again, wire.TypeResumed)
	})
}
