package monitor

import (
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A resuming has holders that accept each Resume, on a new connection.
type resuming struct {
	Holders
	holder chan *net.UnixConn // their ends
}

func (r resuming) Carry(context.Context, uint32, wire.SessionID, *wire.Open, wire.Message, bool) (wire.Message, carrier.Carrier, error) {
	ours, file, err := socketPair()
	if err != nil {
		return wire.Message{}, nil, err
	}
	defer file.Close()
	theirs, err := net.FileConn(file)
	if err != nil {
		return wire.Message{}, nil, err
	}
	r.holder <- theirs.(*net.UnixConn)
	c, err := unixsock.New(ours, nil)
	if err != nil {
		return wire.Message{}, nil, err
	}
	m, err := wire.New(&wire.Resumed{})
	return m, c, err
}

// A network process that was taken over keeps no session of a client that has lost its access or
// has gone: its connection to the holder ends, though it has a descriptor of it and asks nothing.
func TestGuardOfTakenOverProcess(t *testing.T) {
	m, j := newMonitor(t), new(judge)
	holders := resuming{m.holders, make(chan *net.UnixConn, 1)}
	m.holders, m.rights.look = holders, j.look
	r := takenOver(t, m)
	request, err := wire.New(&wire.Resume{UID: uint32(os.Geteuid())})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		when string
		end  func(LoginID)
	}{
		{"left", r.Leave},
		{"withdrawn", func(id LoginID) {
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
		resumed, err := r.Resume(t.Context(), &Resume{Payload: request.Payload})
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
		if r.Check(t.Context(), &By{Login: resumed.Login.ID}) == nil {
			t.Errorf("%s: the login still counts", test.when)
		}
	}
	if _, err := r.Resume(t.Context(), &Resume{Payload: request.Payload}); !withdrawn(err) {
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
	resumed, err := r.Resume(t.Context(), &Resume{Payload: request.Payload})
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
