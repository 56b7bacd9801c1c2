//go:build linux || darwin

package client

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"

	"github.com/quicterm/quicterm/bench/netem"
)

// denials runs a pipe. Its daemon is restarted, and for a while gets an error when it asks
// the holder. If rebooted is true, the client has the mark of an earlier run of the machine.
// It reports whether all bytes arrived, and returns the error by which the session ended.
func denials(t *testing.T, reason error, rebooted bool, away time.Duration) (arrived bool, err error) {
	inWorld(t, netem.Config{Delay: 30 * time.Millisecond}, false, func(w *world) {
		var out bytes.Buffer
		s := w.attach(Streams{Stdout: &out})
		if rebooted {
			s.attached.Boot[0] ^= 1
		}
		in := []byte("before and after")
		w.kept.Go(func() {
			s.Write(in[:6])
			time.Sleep(time.Second)
			w.holders.Fail(reason)
			w.stop()
			w.serve()
			time.Sleep(away)
			w.holders.Fail(nil)
			s.Write(in[6:])
			s.CloseWrite()
			time.Sleep(time.Minute)
			w.holders.Kill() // if the client has given up
		})
		var status int
		status, err = s.Run(context.Background())
		arrived = err == nil && status == 7 && bytes.Equal(out.Bytes(), in)
		w.kept.Wait() // it starts another daemon
	})
	return arrived, err
}

// A session is not called gone while its holder lives, whatever keeps the daemon from
// reaching it.
func TestHolderOutOfReach(t *testing.T) {
	for _, test := range []struct {
		why      string
		reason   error
		rebooted bool
		away     time.Duration
	}{
		{"no descriptors", syscall.EMFILE, false, goneAfter + 20*time.Second},
		{"no descriptors, and another mark", syscall.EMFILE, true, 3 * confirmedAfter},
		{"a directory that cannot be read", fs.ErrPermission, true, 3 * confirmedAfter},
		{"a holder that does not answer", context.DeadlineExceeded, true, 3 * confirmedAfter},
		{"a socket that is made again", fs.ErrNotExist, false, goneAfter - 20*time.Second},
		{"the same, and another mark", fs.ErrNotExist, true, confirmedAfter - time.Second},
	} {
		if arrived, err := denials(t, test.reason, test.rebooted, test.away); !arrived {
			t.Errorf("%s: the pipe ended with %v, want all of it", test.why, err)
		}
	}
}

// A session whose holder is gone ends: soon if the server says so.
func TestHolderGone(t *testing.T) {
	for _, test := range []struct {
		rebooted bool
		away     time.Duration
	}{{true, confirmedAfter + 10*time.Second}, {false, goneAfter + 10*time.Second}} {
		if _, err := denials(t, fs.ErrNotExist, test.rebooted, test.away); !errors.Is(err, ErrGone) {
			t.Errorf("after %v, rebooted is %v: the pipe ended with %v, want %v", test.away, test.rebooted, err, ErrGone)
		}
	}
}
