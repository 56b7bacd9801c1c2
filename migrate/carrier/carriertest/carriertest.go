// Package carriertest checks that an implementation of [carrier.Carrier] keeps the promises of that interface.
package carriertest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
)

// patience is how long anything may take on a busy machine.
const patience = 20 * time.Second

// maxDatagram is the largest datagram that every carrier takes, also a sealed one.
const maxDatagram = carrier.MaxDatagram - carrier.SealSize

// Run runs the suite. The function pair returns the two ends of a new carrier, which the suite closes.
func Run(t *testing.T, pair func(t *testing.T) (a, b carrier.Carrier)) {
	tests := []struct {
		name string
		run  func(t *testing.T, a, b carrier.Carrier)
	}{
		{"Stream", testStream},
		{"StreamBothWays", testStreamBothWays},
		{"Datagrams", testDatagrams},
		{"DatagramsPassFullStream", testDatagramsPassFullStream},
		{"DatagramFlood", testDatagramFlood},
		{"CloseUnblocks", testCloseUnblocks},
		{"CloseIsSeen", testCloseIsSeen},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := pair(t)
			defer a.Close()
			defer b.Close()
			test.run(t, a, b)
		})
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{})
	source.Read(b)
	return b
}

// within fails the test if f takes too long.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: still waiting after %v", what, patience)
	}
}

// pass writes bytes at one end and checks that they arrive at the other. It overwrites the
// slice after each Write, which must not have kept it.
func pass(t *testing.T, from, to carrier.Carrier, b []byte) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		chunk := make([]byte, 0, 50_000)
		for left := b; len(left) > 0; left = left[len(chunk):] {
			chunk = append(chunk[:0], left[:min(len(left), cap(chunk))]...)
			if n, err := from.Write(chunk); n != len(chunk) || err != nil {
				t.Errorf("Write = %d, %v", n, err)
				return
			}
			clear(chunk)
		}
	})
	got := make([]byte, len(b))
	if _, err := io.ReadFull(to, got); err != nil {
		t.Errorf("Read: %v", err)
	} else if !bytes.Equal(got, b) {
		t.Error("the bytes that arrived are not those that were written")
	}
}

func testStream(t *testing.T, a, b carrier.Carrier) {
	within(t, "stream", func() { pass(t, a, b, random(3<<20)) })
}

func testStreamBothWays(t *testing.T, a, b carrier.Carrier) {
	within(t, "streams", func() {
		var wg sync.WaitGroup
		wg.Go(func() { pass(t, a, b, random(1<<20)) })
		wg.Go(func() { pass(t, b, a, random(1<<20)) })
		wg.Wait()
	})
}

// exchange sends a datagram until it arrives: it may be lost.
func exchange(t *testing.T, from, to carrier.Carrier, b []byte) {
	t.Helper()
	received := make(chan []byte)
	go func() {
		for {
			got, err := to.ReceiveDatagram()
			if err != nil {
				close(received)
				return
			}
			if bytes.Equal(got, b) {
				received <- got
				return
			}
		}
	}()
	deadline := time.After(patience)
	for {
		sent := bytes.Clone(b)
		if err := from.SendDatagram(sent); err != nil {
			t.Fatalf("SendDatagram: %v", err)
		}
		clear(sent)
		select {
		case got, ok := <-received:
			if !ok {
				t.Fatal("ReceiveDatagram failed")
			}
			clear(got) // it is ours
			return
		case <-time.After(50 * time.Millisecond): // lost: once more
		case <-deadline:
			t.Fatal("no datagram arrives")
		}
	}
}

func testDatagrams(t *testing.T, a, b carrier.Carrier) {
	if !a.Datagrams() || !b.Datagrams() {
		t.Skip("no datagram lane")
	}
	for _, n := range []int{1, 2, 100, maxDatagram} {
		exchange(t, a, b, random(n))
		exchange(t, b, a, random(n))
	}
}

// A stream that is not read does not delay datagrams.
func testDatagramsPassFullStream(t *testing.T, a, b carrier.Carrier) {
	if !a.Datagrams() {
		t.Skip("no datagram lane")
	}
	go func() {
		for {
			if _, err := a.Write(random(1 << 20)); err != nil {
				return // closed
			}
		}
	}()
	exchange(t, a, b, []byte("datagram"))
	exchange(t, b, a, []byte("answer"))
}

// A carrier drops or delays datagrams that are not received, and does not fail.
func testDatagramFlood(t *testing.T, a, b carrier.Carrier) {
	if !a.Datagrams() {
		t.Skip("no datagram lane")
	}
	within(t, "flood", func() {
		for range 5000 {
			if err := a.SendDatagram(random(maxDatagram)); err != nil {
				t.Errorf("SendDatagram: %v", err)
				return
			}
		}
	})
	exchange(t, a, b, []byte("after the flood"))
}

func testCloseUnblocks(t *testing.T, a, b carrier.Carrier) {
	var wg sync.WaitGroup
	fails := func(f func() error) {
		wg.Go(func() {
			for {
				if err := f(); err != nil {
					return
				}
			}
		})
	}
	fails(func() error { _, err := a.Read(make([]byte, 1)); return err })
	fails(func() error { _, err := a.Write(make([]byte, 1<<20)); return err })
	fails(func() error { _, err := a.ReceiveDatagram(); return err })
	a.Close()
	within(t, "all calls after Close", wg.Wait)
	if err := a.SendDatagram([]byte("x")); err == nil {
		t.Error("SendDatagram after Close: no error")
	}
	a.Close() // a second Close is allowed
}

func testCloseIsSeen(t *testing.T, a, b carrier.Carrier) {
	a.Close()
	within(t, "Read at the other end", func() {
		if n, err := b.Read(make([]byte, 1)); err == nil {
			t.Errorf("Read = %d bytes without an error", n)
		}
	})
}
