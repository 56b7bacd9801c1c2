//go:build linux || darwin

package holder

import (
	"io"
	"log/slog"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/quicterm/holder/programtest"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// FuzzHandle sends messages to a holder, and frames on the carriers that it accepts.
// Messages are a type, a length of two bytes and a payload; the highest bit of the length
// means another scope. Frames are a number, a type, a length and a payload.
func FuzzHandle(f *testing.F) {
	frames := []byte("\x01\x03\x05typed\x02\x04\x08\x00\x50\x00\x18\x00\x00\x00\x00\x03\x05\x03INT\x04\x0b\x02pw")
	for _, body := range []wire.Body{
		&wire.Query{}, &wire.Kill{Session: "x"}, &wire.Attach{PTY: true, Size: wire.Size{Cols: 80, Rows: 24}}, &wire.Attach{},
		&wire.Attach{PTY: true, Role: wire.RoleShare, Input: []byte("ls\r"), Hints: wire.HintsProgram,
			Replay: wire.Replay{Kind: wire.ReplayFrom, From: 5}},
		&wire.Resume{UID: 1, N: 1}, &wire.List{}, &wire.Open{Client: "x"},
	} {
		m := mustEncode(f, body)
		record := append([]byte{byte(m.Type), byte(len(m.Payload) >> 8), byte(len(m.Payload))}, m.Payload...)
		f.Add(true, record, frames)
		f.Add(false, append(record, record...), frames)
	}
	f.Fuzz(func(t *testing.T, pty bool, messages, frames []byte) {
		synctest.Test(t, func(t *testing.T) { handle(t, pty, messages, frames) }) // a Kill takes killWait here
	})
}

func handle(t *testing.T, pty bool, messages, frames []byte) {
	program := programtest.NewStub(pty)
	program.IgnoreSignals()
	h := New(wire.Launch{PTY: pty, Name: "fuzzed", Scope: "mine", Command: "command"}, program, slog.New(slog.DiscardHandler))
	h.append(wire.Stdout, []byte("something\nto be seen"))
	for len(messages) >= 3 {
		open := &wire.Open{Client: "a@x", Scope: "mine"}
		if messages[1]&0x80 != 0 {
			open.Scope, open.NoPTY = "other", true
		}
		n := min(int(messages[1]&0x7f)<<8|int(messages[2]), len(messages)-3)
		m := wire.Message{Type: wire.Type(messages[0]), Payload: messages[3 : 3+n]}
		messages = messages[3+n:]
		answer, carry, err := h.Handle(open, m)
		if err != nil {
			continue
		}
		if may := answer.Type == wire.TypeAttached || answer.Type == wire.TypeResumed; may != (carry != nil) {
			t.Fatalf("message %d is answered with %d, carrier: %v", m.Type, answer.Type, carry != nil)
		}
		if carry == nil {
			continue
		}
		if open.Scope != "mine" && m.Type != wire.TypeResume {
			t.Fatalf("another scope is answered with %d", answer.Type)
		}
		ours, theirs := carriertest.Pair()
		done := make(chan struct{})
		go func() {
			defer close(done)
			carry(theirs)
		}()
		go io.Copy(io.Discard, ours)
		ours.SendDatagram(frames[:min(len(frames), 1000)])
		ours.Write(checksummed(frames))
		ours.Write(frames)
		ours.Close()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("the carrier does not end")
		}
		h.gate.Lock()
		held := 0
		for _, a := range h.clients.all {
			for _, d := range a.endpoint.Take(math.MaxInt) {
				held += buffer.Overhead + len(d.Payload)
			}
			if len(a.carriers) > 0 || a.driver.Carriers() > 0 {
				t.Error("a carrier is left")
			}
		}
		if held > inputWindow {
			t.Errorf("%d bytes of input wait, more than %d", held, inputWindow)
		}
		h.gate.Unlock()
	}
	m, _, err := h.Handle(&wire.Open{}, mustEncode(t, &wire.Query{}))
	var s wire.State
	if err == nil {
		err = m.Decode(&s)
	}
	if err != nil || s.Name != "fuzzed" || s.Memory == 0 {
		t.Errorf("afterwards, a query is answered with %+v, %v", s, err)
	}
	h.gate.Lock()
	h.finishLocked("the test is over")
	h.gate.Unlock()
	h.running.Wait()
}

// checksummed makes frames with valid checksums from bytes that describe them.
func checksummed(b []byte) []byte {
	var out []byte
	for len(b) >= 3 {
		n := min(int(b[2]), len(b)-3)
		out = append(out, frame(uint64(b[0]), buffer.Type(b[1]), string(b[3:3+n]))...)
		b = b[3+n:]
	}
	return out
}
