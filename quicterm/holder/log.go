//go:build linux || darwin

package holder

import (
	"context"
	"time"

	"github.com/quicterm/quicterm/buffer"
)

func (h *Holder) finishLocked(reason string) {
	if h.life.over {
		return
	}
	h.log.Info("ending session", "reason", reason)
	h.life.over = true
	close(h.end)
	h.gate.Changed()
	h.clients.close()
}

// appendLocked adds a frame to the log. It blocks while there is no room. After the program's end it drops what would
// push the Exit frame out: output of processes that the program has left behind.
func (h *Holder) appendLocked(t buffer.Type, payload []byte) {
	h.awaitRoomLocked(len(payload))
	if !h.life.exited || h.ring.Room() >= max(len(payload), 1) {
		h.logLocked(t, payload)
	}
}

// logLocked adds a frame to the log. It waits for nothing.
func (h *Holder) logLocked(t buffer.Type, payload []byte) {
	h.ring.Append(t, payload)
	h.pressure.grownLocked()
	h.clients.appended(time.Now())
	h.emulator.drawLaterLocked()
}

// awaitRoomLocked blocks while n bytes of output must wait for the clients or the emulator.
func (h *Holder) awaitRoomLocked(n int) {
	wait := func() time.Duration {
		if h.life.over {
			return 0
		}
		if h.emulator.awaitsDrawingLocked() {
			return forever
		}
		return h.clients.wait(time.Now(), n, h.life.hungUp)
	}
	for {
		d := wait()
		if d == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), d)
		h.gate.Wait(ctx, func() bool { return wait() == 0 })
		cancel()
	}
}

func (h *Holder) append(t buffer.Type, payload []byte) {
	h.gate.Lock()
	defer h.gate.Unlock()
	h.appendLocked(t, payload)
}
