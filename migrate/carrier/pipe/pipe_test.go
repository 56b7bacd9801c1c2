package pipe_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/pipe"
)

func TestPipe(t *testing.T) {
	carriertest.Run(t, func(*testing.T) (a, b carrier.Carrier) {
		x, y := net.Pipe()
		return pipe.New(x), pipe.New(y)
	})
}

// A plain is a stream that can do no more than it must.
type plain struct{ io.ReadWriteCloser }

// The two directions may be two files, as those of a program that was started are.
func TestPipeOverFiles(t *testing.T) {
	carriertest.Run(t, func(t *testing.T) (a, b carrier.Carrier) {
		ar, bw, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		br, aw, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		return pipe.New(files{ar, aw}), pipe.New(files{br, bw})
	})
}

type files struct{ r, w *os.File }

func (f files) Read(b []byte) (int, error)  { return f.r.Read(b) }
func (f files) Write(b []byte) (int, error) { return f.w.Write(b) }
func (f files) Close() error                { return errors.Join(f.w.Close(), f.r.Close()) }

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		a, b := pipe.New(x), pipe.New(y)
		defer a.Close()
		if s := b.Stats(); s != (carrier.Stats{}) {
			t.Errorf("before anything: %+v", s)
		}
		time.Sleep(time.Hour)
		go func() {
			a.Write([]byte("hello"))
			a.Close()
		}()
		got, err := io.ReadAll(b)
		if string(got) != "hello" || err != nil {
			t.Fatalf("read %q, %v", got, err)
		}
		arrived := time.Now()
		time.Sleep(time.Hour)
		b.Read(make([]byte, 1)) // brings no bytes: it does not count
		want := carrier.Stats{PacketsReceived: 1, BytesReceived: 5}
		s := b.Stats()
		if !s.LastReceived.Equal(arrived) {
			t.Errorf("last received at %v, want %v", s.LastReceived, arrived)
		}
		if s.LastReceived = (time.Time{}); s != want {
			t.Errorf("receiver: %+v, want %+v", s, want)
		}
		if s, want := a.Stats(), (carrier.Stats{PacketsSent: 1, BytesSent: 5}); s != want {
			t.Errorf("sender: %+v, want %+v", s, want)
		}
	})
}

func TestDeadlines(t *testing.T) {
	x, y := net.Pipe()
	defer y.Close()
	c := pipe.New(x)
	if err := c.SetDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read after the deadline: %v", err)
	}
	if err := c.SetWriteDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write after the deadline: %v", err)
	}
	c = pipe.New(plain{x})
	defer c.Close()
	if err := errors.Join(c.SetDeadline(time.Now()), c.SetWriteDeadline(time.Now())); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("a stream without deadlines: %v", err)
	}
	if err := c.CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseWrite of a stream without it: %v", err)
	}
}
