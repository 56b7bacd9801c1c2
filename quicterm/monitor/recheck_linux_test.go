package monitor

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/monitor/access"
	"github.com/quicterm/quicterm/quicterm/monitor/privsep"
	"github.com/quicterm/quicterm/quicterm/monitor/processes"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A resuming has holders that accept each Resume, on a new connection.
type resuming struct {
	processes.Holders
	holder chan *net.UnixConn // their ends
}

func (r resuming) Carry(context.Context, uint32, wire.SessionID, *wire.Open, wire.Message, bool) (wire.Message, carrier.Carrier, error) {
	ours, theirs, err := unixPair()
	if err != nil {
		return wire.Message{}, nil, err
	}
	r.holder <- theirs
	c, err := unixsock.New(ours, nil)
	if err != nil {
		return wire.Message{}, nil, err
	}
	m, err := wire.New(&wire.Resumed{})
	return m, c, err
}

// unixPair returns two connected sockets.
func unixPair() (a, b *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range []**net.UnixConn{&a, &b} {
		f := os.NewFile(uintptr(fds[i]), "pair")
		defer f.Close()
		conn, err := net.FileConn(f)
		if err != nil {
			return nil, nil, err
		}
		*c = conn.(*net.UnixConn)
	}
	return a, b, nil
}

// A network process that was taken over keeps no session of a client that has lost its access or
// has gone: its connection to the holder ends, though it has a descriptor of it and asks nothing.
func TestRecheckOfTakenOverProcess(t *testing.T) {
	m, j := newMonitor(t), new(judge)
	holders := resuming{m.holders, make(chan *net.UnixConn, 1)}
	m.holders, m.rights.Look = holders, j.look
	r := takenOver(t, m)
	request, err := wire.New(&wire.Resume{UID: uint32(os.Geteuid())})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		when string
		end  func(privsep.LoginID)
	}{
		{"left", func(id privsep.LoginID) { r.Leave(t.Context(), &id) }},
		{"withdrawn", func(id privsep.LoginID) {
			m.checkOverdue(t.Context())
			if n := j.looks.Load(); n != 0 {
				t.Errorf("%d checks before they are due", n)
			}
			m.logins.mu.Lock()
			m.logins.byID[id].due = time.Now().Add(-time.Second)
			m.logins.mu.Unlock()
			j.says(errGone)
			m.checkOverdue(t.Context())
		}},
	} {
		resumed, err := r.Resume(t.Context(), &privsep.Resume{Payload: request.Payload})
		if err != nil {
			t.Fatal(err)
		}
		defer resumed.Carrier.Close()
		holder := <-holders.holder
		defer holder.Close()
		holder.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := resumed.Carrier.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := holder.Read(make([]byte, 2)); n != 1 {
			t.Fatalf("%s: the carrier does not work: %v", test.when, err)
		}
		test.end(resumed.Login.ID)
		if _, err := holder.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: the holder reads on: %v", test.when, err)
		}
		if _, err := resumed.Carrier.Write([]byte("x")); err == nil {
			t.Errorf("%s: the network process can still write", test.when)
		}
		if second(r.Check(t.Context(), &privsep.By{Login: resumed.Login.ID})) == nil {
			t.Errorf("%s: the login still counts", test.when)
		}
	}
	if _, err := r.Resume(t.Context(), &privsep.Resume{Payload: request.Payload}); !access.IsWithdrawn(err) {
		t.Errorf("resumed without access: %v", err)
	}
}

// A carrier that the network process closes ends for the holder at once, though the monitor has a
// descriptor of it.
func TestHandedOverCarrierEnds(t *testing.T) {
	m := newMonitor(t)
	holders := resuming{m.holders, make(chan *net.UnixConn, 1)}
	m.holders = holders
	r := takenOver(t, m)
	request, err := wire.New(&wire.Resume{UID: uint32(os.Geteuid())})
	if err != nil {
		t.Fatal(err)
	}
	resumed, err := r.Resume(t.Context(), &privsep.Resume{Payload: request.Payload})
	if err != nil {
		t.Fatal(err)
	}
	resumed.Carrier.Close()
	holder := <-holders.holder
	defer holder.Close()
	holder.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := holder.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the holder reads on: %v", err)
	}
}
