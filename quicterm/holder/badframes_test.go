//go:build linux || darwin

package holder

import (
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/session/driver"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// frame encodes a frame.
func frame(seq uint64, typ buffer.Type, payload string) []byte {
	return buffer.AppendFrame(nil, buffer.Frame{Seq: seq, Type: typ, Payload: []byte(payload)})
}

// The types of frames that have no number, as in SPEC.md.
const (
	ackType    buffer.Type = 0x80
	pingType   buffer.Type = 0x81
	noticeType buffer.Type = 0x82
	gapType    buffer.Type = 0x83
)

// ackOf encodes the payload of an ack.
func ackOf(received, unconsumed, limit, highest uint64) string {
	b := []byte{1<<0 | 1<<1 | 1<<2}
	for _, v := range []uint64{received, unconsumed, limit, highest} {
		b = binary.AppendUvarint(b, v)
	}
	return string(b)
}

// corrupted returns a frame with one bit of it changed.
func corrupted(bit int) []byte {
	b := frame(1, wire.Stdin, "corrupted")
	b[bit/8] ^= 1 << (bit % 8)
	return b
}

// flood returns consecutive frames of more bytes than the flow-control window.
func flood() []byte {
	var b []byte
	for seq := uint64(1); len(b) < 3<<20; seq++ {
		b = append(b, frame(seq, wire.Stdin, string(make([]byte, 60_000)))...)
	}
	return b
}

// badStreams are bytes that no stream may bring.
var badStreams = []struct {
	why    string
	send   []byte
	reason string // in the log
}{
	{"random bytes", random(1 << 16), "stream: "},
	{"zeros", make([]byte, 16), "checksum"},
	{"corrupted checksum", corrupted(22*8 + 3), "checksum"},
	{"corrupted payload", corrupted(13 * 8), "checksum"},
	{"corrupted number", corrupted(7 * 8), "checksum"},
	{"corrupted length", append(corrupted(10*8), make([]byte, 300)...), "checksum"},
	{"too long", append(binary.BigEndian.AppendUint64(nil, 1), 3, 1, 0, 1), "longer than allowed"},
	{"cut in the header", frame(1, wire.Stdin, "cut")[:9], ""},
	{"cut in the payload", frame(1, wire.Stdin, "cut")[:13], ""},
	{"cut in the checksum", frame(1, wire.Stdin, "cut")[:17], ""},
	{"far in the future", frame(1+session.MaxAhead, wire.Stdin, "early"), "protocol error: frame 1025 on a stream"},
	{"the last number", frame(math.MaxInt64, wire.Stdin, "last"), "protocol error: frame 9223372036854775807, above"},
	{"no number", frame(0, wire.Stdin, "none"), "protocol error: frame of type 0x3 with sequence number 0"},
	{"a numbered ack", frame(1, ackType, ackOf(1, 0, 1<<20, 0)), "protocol error: frame of type 0x80 with sequence number 1"},
	{"a numbered unknown", frame(1, 0xff, ""), "protocol error: frame of type 0xff"},
	{"ack of the future", frame(0, ackType, ackOf(1<<40, 0, 1<<50, 0)), "never sent"},
	{"highest of the future", frame(0, ackType, ackOf(1, 0, 1<<50, 1<<40)), "never sent"},
	{"ack of nothing", frame(0, ackType, ackOf(0, 0, 0, 0)), "protocol error: ack"},
	{"ack of less than nothing", frame(0, ackType, ackOf(1, 5, 0, 0)), "protocol error: ack"},
	{"empty ack", frame(0, ackType, ""), "protocol error: ack"},
	{"endless varint", frame(0, ackType, strings.Repeat("\xff", 40)), "protocol error: ack"},
	{"empty gap", frame(0, gapType, ""), "protocol error: gap"},
	{"gap back", append(frame(1, wire.Resize, "some bytes"), frame(0, gapType, "\x09\x01")...), "protocol error: gap from offset"},
	{"gap to the last number", frame(0, gapType, string(binary.AppendUvarint(nil, math.MaxUint64))+"\x00"), "protocol error: gap to frame 18446744073709551615"},
	{"empty notice", frame(0, noticeType, ""), "protocol error: notice"},
	{"long notice", frame(0, noticeType, strings.Repeat("x", 1000)), "protocol error: notice"},
	{"more than the window", flood(), "protocol error: frame"},
	{"compressed unasked", frame(0, session.Compressed, "\x01\x00\x00\x00"), "protocol error: compressed frame"},
	{"compressed garbage", packed("\x01\x00\x01\x00garbage"), "bad compressed frame"},
	{"compressed beyond bounds", packed("\x01\xff\xff\xff"), "bad compressed frame"},
	{"compressed without end", packed("\x01\x02\x00\x00" + bomb), "bad compressed frame"},
}

// packed is a compressed frame.
func packed(payload string) []byte { return frame(0, session.Compressed, payload) }

// bomb is a zstd stream of 1000 blocks, each of 128 KiB of the same byte.
var bomb = "\x28\xb5\x2f\xfd\x00\x40" + strings.Repeat("\x02\x00\x10x", 1000)

// A stream that brings any of them is closed, with one line in the log. The session
// continues, for the same client and for others.
func TestBadStreams(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	for _, test := range badStreams {
		t.Run(test.why, func(t *testing.T) {
			w.t = t
			good := w.attach("good@x")
			good.ping()
			for _, role := range []string{"writer", "displaced"} {
				if w.compression = driver.On; test.why == "compressed unasked" {
					w.compression = driver.Off
				}
				bad, conn := w.join("bad@x")
				w.compression = driver.Off
				if role == "displaced" {
					good.hangUp()
					good = w.attach("good@x")
				}
				w.log.clear()
				ended := make(chan struct{})
				go func() { // or the holder could not write
					defer close(ended)
					io.Copy(io.Discard, conn)
				}()
				conn.Write(test.send)
				if strings.HasPrefix(test.why, "cut") {
					conn.Close()
				}
				select {
				case <-ended:
				case <-time.After(20 * time.Second):
					t.Fatalf("%s: the carrier is not closed", role)
				}
				conn.Close()
				level := "level=WARN"
				if strings.HasPrefix(test.why, "cut") {
					level = "level=DEBUG"
				}
				w.awaitLog(1, "carrier ended", "client=bad@x", level, test.reason)
				w.awaitLog(1, "carrier ended", "client=bad@x")
				if role == "writer" {
					bad.resume()
					bad.hangUp()
					w.awaitLog(2, "carrier ended", "client=bad@x")
				} else {
					good.ping()
				}
			}
			good.hangUp()
		})
	}
}

// Datagrams that hold no frames are dropped, without harm.
func TestBadDatagrams(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	c, conn := w.join("a@x")
	junk := [][]byte{
		{}, {0}, random(1), random(15), random(16), random(carrier.MaxDatagram), random(carrier.MaxDatagram + 1), random(5000),
		make([]byte, 16), corrupted(22 * 8), corrupted(0), frame(1, wire.Stdin, "cut")[:18],
		append(binary.BigEndian.AppendUint64(nil, 1), 3, 1, 0, 1),
		frame(1+session.MaxEarly, wire.Stdin, "early"), frame(1<<62, wire.Stdin, "last"),
		append(frame(0, pingType, "\x01"), random(50)...),
		frame(0, 0xfe, "unknown"), frame(0, pingType, ""), frame(0, noticeType, "\xc8unknown"),
	}
	for range 3 {
		for _, b := range junk {
			if err := conn.SendDatagram(b); err != nil {
				t.Fatalf("datagram of %d bytes: %v", len(b), err)
			}
		}
	}
	// In any order, and more than once: the kernel drops what the holder is too slow for, and the stream, which
	// has other frames with these numbers, is a lane of its own.
	received := func(seq uint64, what string, ok func(session.Counters, uint64) bool) {
		t.Helper()
		w.await(what, func() (done bool) {
			if err := conn.SendDatagram(frame(seq, wire.Stdin, string(rune('`'+seq)))); err != nil {
				t.Fatal(err)
			}
			w.locked(func(h *Holder) {
				e := h.clients.writer().endpoint
				next, _ := e.Next()
				done = ok(e.Counters(), next)
			})
			return done
		})
	}
	received(3, "frame 3, twice", func(n session.Counters, _ uint64) bool { return n.Reordered > 0 && n.Duplicates > 0 })
	received(1, "frame 1", func(_ session.Counters, next uint64) bool { return next == 2 })
	received(2, "frames 2 and 3", func(_ session.Counters, next uint64) bool { return next == 4 })
	for range 3 {
		c.input.Append(wire.Stdin, []byte("-"))
	}
	c.run(conn, true)
	c.awaitOutput("abc")
	c.ping()
	if !strings.HasPrefix(c.output(), "abcping") {
		t.Errorf("output %q", c.output())
	}
	w.awaitLog(0, "carrier ended")
	w.locked(func(h *Holder) {
		if n := h.clients.writer().endpoint.Counters(); n.Corrupted == 0 {
			t.Errorf("counted %+v", n)
		}
	})
	c.hangUp()
}

// A frame that a client must not send ends the carrier if a datagram brings it as well.
func TestForbiddenDatagrams(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	for _, test := range badStreams {
		if !strings.HasPrefix(test.reason, "protocol error") && test.reason != "never sent" ||
			strings.Contains(test.reason, "on a stream") || len(test.send) > carrier.MaxDatagram {
			continue
		}
		_, conn := w.join("bad@x")
		w.log.clear()
		for range 2 {
			conn.SendDatagram(test.send)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			io.Copy(io.Discard, conn)
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the carrier is not closed", test.why)
		}
		conn.Close()
		w.awaitLog(1, "carrier ended", "datagram: ", test.reason)
	}
	w.attach("good@x").ping()
}

// Frames with a payload that makes no sense, or that no client sends, take their place in
// the log and do nothing.
func TestFramesWithoutEffect(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	a := w.attach("a@x")
	a.ping()
	a.send(wire.Resize, "")
	a.send(wire.Resize, "\x00\x50\x00")
	a.send(wire.Signal, "")
	a.send(wire.Signal, strings.Repeat("KILL", 1000))
	a.send(wire.EOF, "\x01")
	a.send(wire.EOF, "\x09")
	a.send(wire.EOF, "")
	a.send(wire.Closed, "")
	a.send(wire.Closed, "\x01")
	a.send(wire.Closed, "\xff")
	a.send(wire.Stdout, "not mine to say")
	a.send(wire.Stderr, "nor this")
	a.send(wire.Exit, "\x00")
	a.send(wire.Take, "\x00\x50\x00")
	a.send(wire.EnteredFrame, "\x00")
	a.send(wire.TypistFrame, "\x00")
	a.send(wire.EntryFrame, "\x00")
	a.send(wire.EntryFrame, string((&wire.Entry{Text: []byte("of a client without hints")}).Append(nil)))
	a.send(0x7e, "unknown")
	a.send(0x7f, "")
	a.send(wire.Stdin, "")
	a.ping()
	a.await("all to be consumed", func() bool { return a.endpoint.Consumed() == a.input.Next() })
	w.awaitLog(0, "level=WARN")
	if strings.Contains(a.output(), "mine") || len(w.program.Signals()) > 0 || w.program.Size() != (wire.Size{}) {
		t.Errorf("output %q, signals %v, size %v", a.output(), w.program.Signals(), w.program.Size())
	}
}

// A client that reports a gap in its own log loses only those frames.
func TestGapsOfAClient(t *testing.T) {
	w := onSocket(t, wire.Launch{PTY: true})
	for _, payload := range []string{"\x05\x20", string(binary.AppendUvarint(binary.AppendUvarint(nil, math.MaxUint64), math.MaxUint64))} {
		bad, conn := w.join("bad@x")
		conn.Write(frame(0, gapType, payload))
		conn.Write(frame(math.MaxInt64, wire.Stdin, "wraps"))
		conn.Write(frame(1, wire.Stdin, "again"))
		conn.Close()
		_ = bad
		good := w.attach("good@x")
		good.ping()
		good.hangUp()
		w.awaitLog(0, "level=ERROR")
	}
}
