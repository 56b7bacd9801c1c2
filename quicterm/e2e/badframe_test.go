//go:build linux || darwin

package e2e

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A stream that breaks the protocol ends its connection. The session continues with
// the next one.
func badStreams(t *testing.T, h *rig.Host) {
	instance := newInstance()
	first, attached := attachRaw(t, h, &wire.Attach{Instance: instance, Session: "bad-streams", Mode: wire.ModeAttachOrCreate, Command: "exec sleep 1000"})
	first.conn.Close()
	corrupt := frame(1, wire.Stdin, "corrupt")
	corrupt[14] ^= 4
	var flood []byte
	for seq := uint64(1); len(flood) < 2<<20; seq++ {
		flood = append(flood, frame(seq, wire.Stdin, string(random(60_000)))...)
	}
	for i, test := range []struct {
		send []byte
		why  string
	}{
		{corrupt, "frame checksum mismatch"},
		{random(3000), "frame (longer than allowed|checksum mismatch)"},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 1, 3, 0xff, 0xff, 0xff}, "frame longer than allowed"},
		{frame(5000, wire.Stdin, "early"), "frame 5000 on a stream"},
		{frame(math.MaxInt64, wire.Stdin, "last"), "frame 9223372036854775807, above"},
		{frame(0, wire.Stdin, "none"), "sequence number 0"},
		{ackFrame(1<<40, 0, 1<<50, 0, 0, 0, 0), "never sent"},
		{ackFrame(1, 0, 1<<50, 1<<40, 0, 0, 0), "never sent"},
		{ackFrame(1, 7), "protocol error: ack"},
		{frame(0, 0x82, ""), "protocol error: notice of 0 bytes"},
		{frame(0, 0x83, "\xff"), "protocol error: gap"},
		{flood, "beyond the flow-control window"},
	} {
		c := dialRaw(t, h)
		resumed := c.resume(attached, uint64(i+1), instance)
		from := h.Log.Len()
		go resumed.Write(test.send) // the daemon may close the connection before it has read all
		c.readToEnd()
		h.Log.Await(t, from, regexp.MustCompile(`session=bad-streams .*`+test.why))
		logged := regexp.MustCompile(`session=bad-streams .*error=.*`+test.why).FindAllString(h.Log.String()[from:], -1)
		if len(logged) != 1 {
			t.Errorf("%d lines in the log, want 1:\n%s", len(logged), strings.Join(logged, "\n"))
		}
	}
}

// Malformed datagrams are dropped, and repeated and late ones are normal. A datagram
// that breaks the protocol ends the connection, as on a stream.
func badDatagrams(t *testing.T, h *rig.Host) {
	c := dialRaw(t, h)
	for n := range 7 { // before login as well, where more would end the connection
		c.conn.SendDatagram(random(n * 150))
	}
	instance := newInstance()
	c.send(encode(t, &wire.Hello{}), newToken(t, h),
		encode(t, &wire.Attach{Instance: instance, Session: "bad-datagrams", Mode: wire.ModeAttachOrCreate, Command: "cat"}))
	var attached wire.Attached
	c.wantMessage(&attached)
	junk := func() {
		for _, b := range [][]byte{{}, {0}, make([]byte, 16), random(16), random(1000), random(carrier.MaxDatagram),
			frame(1, wire.Stdin, "cut")[:15], frame(5000, wire.Stdin, "early"), frame(0, 0xfe, "unknown"),
			append(frame(0, 0x81, "\x01"), random(30)...)} {
			if err := c.conn.SendDatagram(b); err != nil {
				t.Fatalf("datagram of %d bytes: %v", len(b), err)
			}
		}
	}
	junk()
	for _, seq := range []uint64{3, 2, 3, 1, 1, 3, 5, 4, 2, 5} {
		if err := c.conn.SendDatagram(frame(seq, wire.Stdin, fmt.Sprintf("<%d>", seq))); err != nil {
			t.Fatal(err)
		}
		junk()
	}
	// Datagrams may be lost, so the stream repeats the frames.
	for seq := uint64(1); seq <= 5; seq++ {
		c.send(frame(seq, wire.Stdin, fmt.Sprintf("<%d>", seq)))
	}
	c.wantOutput("<1><2><3><4><5>")
	c.conn.Close()
	if lines := warnings(h, 0, "session=bad-datagrams"); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}

	from := h.Log.Len()
	c = dialRaw(t, h)
	resumed := c.resume(&attached, 1, instance)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.readToEnd()
	}()
	for done := false; !done; { // a datagram may be lost
		resumed.SendDatagram(ackFrame(1<<40, 0, 0, 0, 0, 0, 0))
		select {
		case <-ended:
			done = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	h.Log.Await(t, from, regexp.MustCompile(`session=bad-datagrams .*error="datagram: protocol error: ack of frames`))
}
