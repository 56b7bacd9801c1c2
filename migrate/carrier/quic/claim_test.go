package quic_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	quicgo "github.com/quic-go/quic-go"
)

// Datagrams carry QUIC's acks: at an end that answers datagrams with datagrams, no packet has an ack alone.
func TestDatagramsCarryAcks(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		c, err := full(context.Background(), e, clientTLS())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("stream")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * roundTrip) // the handshake is complete and acknowledged
		before := c.Stats()
		const datagrams = 100
		for range datagrams {
			if err := c.SendDatagram([]byte("datagram")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.ReceiveDatagram(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // less than an ack may wait
		}
		after := c.Stats()
		sent, received := after.PacketsSent-before.PacketsSent, after.PacketsReceived-before.PacketsReceived
		// Without claims there are twice as many. A few claims may be late.
		if limit := uint64(datagrams * 3 / 2); sent > limit || received > limit {
			t.Errorf("%d packets up, %d down for %d datagrams each way, want at most %d", sent, received, datagrams, limit)
		}
	})
}

// A client can make the server keep little on the stream from which nothing is read.
func TestUnreadStream(t *testing.T) {
	inEchoWorld(t, func(e *echoServer) {
		transport := &quicgo.Transport{Conn: e.net.Listen(netip.MustParseAddrPort("10.0.0.1:0"))}
		defer transport.Close()
		conn, err := transport.Dial(context.Background(), net.UDPAddrFromAddrPort(echoAddr), clientTLS(),
			&quicgo.Config{EnableDatagrams: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseWithError(0, "")
		stream, err := conn.OpenUniStream()
		if err != nil {
			t.Fatal(err)
		}
		stream.SetWriteDeadline(time.Now().Add(time.Minute))
		n, err := stream.Write(make([]byte, 1<<20))
		if n == 0 || n > 32<<10 || err == nil {
			t.Errorf("%d bytes were sent, %v; want some, at most 32 KiB, and the deadline's error", n, err)
		}
		if _, err := conn.OpenUniStream(); err == nil {
			t.Error("the server permits another unidirectional stream")
		}
	})
}
