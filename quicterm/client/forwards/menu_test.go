package forwards

import (
	"context"
	"errors"
	"net"
	"testing"
)

// A forward that has ended, by the menu or with its client, listens no more, also if it was about to.
func TestEndedForwardListens(t *testing.T) {
	for what, end := range map[string]func(*Forwards, *entry){
		"removed": func(f *Forwards, e *entry) { f.list.remove(e) },
		"closed":  func(f *Forwards, _ *entry) { f.list.close() },
	} {
		for _, network := range []string{"tcp", "udp"} {
			var f Forwards
			f.life, f.stop = context.WithCancel(context.Background())
			e := f.list.enter(Spec{Kind: Local, Listen: Address{Host: "127.0.0.1", UDP: network == "udp"}})
			end(&f, e)
			if err := f.listenOn(e, network, "127.0.0.1:0"); !errors.Is(err, net.ErrClosed) || len(e.listeners) > 0 {
				t.Errorf("%s, %s: %v, %d listeners", what, network, err, len(e.listeners))
			}
			f.stop()
			f.work.Wait()
		}
	}
}

// The numbers of the list are for removing, whatever ports the server says are open.
func TestNumberIsNoPort(t *testing.T) {
	var f Forwards
	f.life, f.stop = context.WithCancel(context.Background())
	defer f.stop()
	f.list.enter(Spec{Kind: Local, Listen: Address{Host: "localhost", Port: 8080}, Target: Address{Host: "db", Port: 80}})
	f.list.offered = []uint16{1, 2}
	if _, err := f.do(t.Context(), "1"); err != nil || len(f.list.all()) != 0 {
		t.Errorf("%v, left are %d", err, len(f.list.all()))
	}
	if _, err := f.do(t.Context(), "3"); err == nil {
		t.Error("3 is neither a forward nor a port")
	}
}
