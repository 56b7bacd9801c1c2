package netem

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/quicterm/quicterm/bench/bubble"
)

var (
	streamServer = netip.MustParseAddrPort("10.9.0.1:4433")
	streamClient = netip.MustParseAddr("10.0.0.1")
)

// withStreams calls f in a bubble with a network of one link each way.
func withStreams(t *testing.T, cfg Config, f func(n *Net, up, down *Link)) {
	synctest.Test(t, func(t *testing.T) {
		up, down := NewLink(cfg, 1), NewLink(cfg, 2)
		n := NewNet(func(from, _ netip.AddrPort) *Link {
			if from == streamServer {
				return down
			}
			return up
		})
		defer n.Close()
		f(n, up, down)
		if open := n.Streams(); open != 0 {
			t.Errorf("%d ends of streams are open", open)
		}
	})
}

// All bytes arrive once and in order, whatever the links do.
func TestStream(t *testing.T) {
	withStreams(t, Config{Delay: 50 * time.Millisecond, Jitter: time.Millisecond, Loss: .1, Reorder: .2, Duplicate: .2},
		func(n *Net, up, down *Link) {
			l := n.ListenStream(streamServer)
			done := make(chan struct{})
			go func() {
				defer close(done)
				c, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(c, c)
				c.Close()
			}()
			c, err := n.DialStream(context.Background(), streamClient, streamServer)
			if err != nil {
				t.Fatal(err)
			}
			sent := bytes.Repeat([]byte("0123456789abcdef"), 10_000)
			go func() {
				c.Write(sent[:50_000])
				n.Do(func() { up.Set(Config{Down: true}); down.Set(Config{Down: true}) })
				time.Sleep(time.Minute)
				n.Do(func() { up.Set(Config{Delay: time.Millisecond}); down.Set(Config{Delay: time.Millisecond}) })
				c.Write(sent[50_000:])
				c.(*stream).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back of %d, %v", len(got), len(sent), err)
			}
			c.Close()
			l.Close()
			<-done
		})
}

func TestStreamRefused(t *testing.T) {
	withStreams(t, Config{Delay: 50 * time.Millisecond}, func(n *Net, up, _ *Link) {
		begun := time.Now()
		_, err := n.DialStream(context.Background(), streamClient, streamServer)
		if took := time.Since(begun); !errors.Is(err, syscall.ECONNREFUSED) || took != 100*time.Millisecond {
			t.Errorf("%v after %v, want to be refused in a round trip", err, took)
		}
		n.Do(func() { up.Set(Config{Down: true}) })
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := n.DialStream(ctx, streamClient, streamServer); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want no answer", err)
		}
	})
}

// The peer of an end that is closed is told when it writes.
func TestStreamReset(t *testing.T) {
	withStreams(t, Config{Delay: 50 * time.Millisecond}, func(n *Net, _, _ *Link) {
		l := n.ListenStream(streamServer)
		go func() {
			if c, err := l.Accept(); err == nil {
				c.Close()
			}
		}()
		c, err := n.DialStream(context.Background(), streamClient, streamServer)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want the end", err)
		}
		c.Write([]byte("x"))
		time.Sleep(time.Second)
		if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write: %v, want a reset", err)
		}
		c.SetDeadline(time.Now())
		c.Close()
		if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write to an end that is closed: %v", err)
		}
		l.Close()
	})
}
