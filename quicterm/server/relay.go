//go:build linux || darwin

package server

import (
	"context"
	"io"
	"sync"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// relay sends a holder's answer to the client, then copies the stream and the
// datagrams in both directions until the client or the holder ends the carrier. It
// closes both.
func (c *conn) relay(answer wire.Message, toHolder carrier.Carrier) error {
	defer toHolder.Close()
	// A holder that does not read must not keep a client that has gone.
	defer context.AfterFunc(c.incoming.Context(), func() { toHolder.Close() })()
	if err := wire.Write(c.carrier, answer); err != nil {
		return err
	}
	fromClient := &heardCarrier{Carrier: c.carrier, member: c.member}
	var wg sync.WaitGroup
	if c.carrier.Datagrams() {
		c.spawn(&wg, func() { copyDatagrams(toHolder, fromClient) })
		c.spawn(&wg, func() { copyDatagrams(c.carrier, toHolder) })
	}
	c.spawn(&wg, func() {
		copyStream(toHolder, fromClient)
		toHolder.Close() // the client has closed its side
		c.discard()
	})
	copyStream(c.carrier, toHolder)
	c.awaitClose()
	wg.Wait()
	return nil
}

// An idle carrier has a small buffer in each direction. A busy one borrows a large
// one from largeBuffers.
const (
	smallBuffer = 2 << 10
	largeBuffer = 64 << 10
)

var largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// copyStream copies until a read or a write fails.
func copyStream(dst io.Writer, src io.Reader) {
	small := make([]byte, smallBuffer)
	var large *[largeBuffer]byte
	buf := small
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
		switch {
		case large == nil && n == len(small):
			large = largeBuffers.Get().(*[largeBuffer]byte)
			buf = large[:]
		case large != nil && n < len(small):
			largeBuffers.Put(large)
			large, buf = nil, small
		}
	}
}

// copyDatagrams copies until a receive or a send fails. It drops datagrams that are
// longer than a carrier takes.
func copyDatagrams(dst, src carrier.Carrier) {
	for {
		b, err := src.ReceiveDatagram()
		if err != nil {
			return
		}
		if len(b) > carrier.MaxDatagram {
			continue
		}
		if err := dst.SendDatagram(b); err != nil {
			return
		}
	}
}
