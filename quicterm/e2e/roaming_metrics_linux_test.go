package e2e

import (
	"fmt"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
	"github.com/quicterm/quicterm/bench/rig"
)

// While a session moves between the interfaces and addresses of a laptop, the daemon's metrics say what
// happens: further connections and how long they took, changed addresses, lost packets.
func TestMetricsOfRoaming(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits until the daemon has looked at its connections")
	}
	if err := rig.CanNamespace(); err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	socket := h.Path("metrics.sock")
	h.Settings["metrics"] = fmt.Sprintf("%q", "unix:"+socket)
	laptop, wifi, mobile := roamingWorld(t, h)
	h.Start()
	h.Log.Await(t, 0, regexp.MustCompile("metrics are served"))
	s := scrape(t, socket)

	x := rig.Open(t, laptop.In(h.Via(h.Addr, "connect", []string{"-t", "--predict", "never"}, "stty -echo; echo re''ady; exec cat")))
	x.Expect("ready")
	s.await(`quicterm_carriers{kind="quic"}`, 1)
	n := 0
	echo := func() {
		t.Helper()
		n++
		x.Send(fmt.Sprintf("line %d\r", n))
		x.Expect(fmt.Sprintf("line %d\r\n", n))
	}
	echo()
	before, err := s.get()
	if err != nil {
		t.Fatal(err)
	}

	wifi.Set(netem.Config{Down: true})
	echo()
	s.await("quicterm_resumes_total", before["quicterm_resumes_total"]+1)
	s.await("quicterm_reconnect_seconds_count", before["quicterm_reconnect_seconds_count"]+1)
	s.await(`quicterm_carriers_total{kind="quic"}`, before[`quicterm_carriers_total{kind="quic"}`]+1)

	// The daemon looks at addresses and round trips every 15 s. A connection that is replaced before
	// that has not moved.
	all := before
	for last := byte(9); all["quicterm_moves_total"] == before["quicterm_moves_total"]; last++ {
		if last == 200 {
			t.Fatalf("no move is counted, in\n%v", all)
		}
		mobile.Translate(netip.AddrFrom4([4]byte{10, 2, 0, last}))
		echo()
		time.Sleep(500 * time.Millisecond) // between two moves
		if all, err = s.get(); err != nil {
			t.Fatal(err)
		}
	}
	s.await("quicterm_rtt_seconds_count", before["quicterm_rtt_seconds_count"]+1)

	mobile.Set(netem.Config{Loss: 0.3})
	for range 30 {
		echo()
	}
	mobile.Set(netem.Config{})
	echo()
	s.await(`quicterm_sessions{state="attached"}`, 1)
	x.Send("\x04")
	x.Exit()
	s.await("quicterm_sessions_ended_total", 1)
	s.await("quicterm_packets_lost_total", before["quicterm_packets_lost_total"]+1)
}
