//go:build linux || darwin

package server

import (
	"context"
	"io"
	"sync"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// relay sends a holder's answer to the client, then copies the stream and the datagrams in both directions until the
// client or the holder ends the carrier. It closes both. The holder is of an account.
func (c *conn) relay(uid uint32, answer wire.Message, toHolder carrier.Carrier) error {
	defer toHolder.Close()
	// A holder that does not read must not keep a client that has gone.
	defer context.AfterFunc(c.incoming.Context(), func() {
		c.ending.because(endWords(context.Cause(c.incoming.Context())))
		toHolder.Close()
	})()
	c.toHolder.Store(&toHolder) // first: a client that has the answer may send frames
	c.startDatagrams()
	if err := wire.Write(c.carrier, answer); err != nil {
		return err
	}
	processors := &c.server.processors
	borrow := func() (giveBack func(), ok bool) { return c.server.accounts.large.Try(uid) }
	fromClient := func(n int) {
		c.member.brought(n)
		processors.relayed(n)
	}
	var wg sync.WaitGroup
	if c.carrier.Datagrams() {
		c.spawn(&wg, func() { copyDatagrams(c.carrier, toHolder, processors.relayed) })
	}
	c.spawn(&wg, func() {
		if readErr, _ := copyStream(toHolder, c.carrier, borrow, fromClient); readErr != nil {
			c.ending.because(endWords(readErr))
		}
		toHolder.Close() // the client has closed its side
		c.discard()
	})
	if _, writeErr := copyStream(c.carrier, toHolder, borrow, processors.relayed); writeErr != nil {
		c.ending.because(endWords(writeErr))
	}
	c.ending.because(endedBySession)
	c.awaitClose()
	wg.Wait()
	return nil
}

// An idle carrier has a small buffer in each direction. A busy one borrows a large one from
// largeBuffers, if fewer than maxLarge of its account are borrowed. It takes all that a holder writes at once, sealed.
const (
	smallBuffer = 2 << 10
	largeBuffer = 66 << 10
)

var largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// copyStream copies until a read or a write fails, and returns the error of the one that did. It calls copies with how
// much each read has brought, and borrow for a large buffer.
func copyStream(
	dst io.Writer, src io.Reader, borrow func() (giveBack func(), ok bool), copies func(int),
) (readErr, writeErr error) {
	small := make([]byte, smallBuffer)
	var large *[largeBuffer]byte
	giveBack := func() {}
	defer func() { giveBack() }()
	buf := small
	for {
		n, err := src.Read(buf)
		if n > 0 {
			copies(n)
			if _, err := dst.Write(buf[:n]); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return err, nil
		}
		switch {
		case large == nil && n == len(small):
			if end, ok := borrow(); ok {
				large = largeBuffers.Get().(*[largeBuffer]byte)
				buf = large[:]
				giveBack = func() {
					largeBuffers.Put(large)
					end()
				}
			}
		case large != nil && n < len(small):
			giveBack()
			large, buf, giveBack = nil, small, func() {}
		}
	}
}

// startDatagrams starts to receive the client's datagrams, unless that is done.
func (c *conn) startDatagrams() {
	if c.carrier.Datagrams() && !c.receiving {
		c.receiving = true
		c.spawn(&c.datagrams, c.receiveDatagrams)
	}
}

// maxEarly bounds the datagrams that come before relay, in bytes. A client that waits for an
// answer sends Pings only, of about 40 bytes.
const maxEarly = 8 << 10

// receiveDatagrams passes the client's datagrams on to the holder, until the connection ends. It
// drops those that come before relay, of which quic-go would keep 128, and closes the connection
// if there are too many: quic-go keeps a burst in memory until the next datagram comes.
func (c *conn) receiveDatagrams() {
	early := 0
	for {
		b, err := c.carrier.ReceiveDatagram()
		if err != nil {
			return
		}
		if to := c.toHolder.Load(); to != nil {
			c.member.heard()
			c.server.processors.relayed(len(b))
			passDatagram(*to, b) // an error is that of a holder that ends the relay
		} else if early += len(b); early > maxEarly {
			c.incoming.Close()
			return
		}
	}
}

// copyDatagrams copies until a receive or a send fails.
func copyDatagrams(dst, src carrier.Carrier, copies func(int)) {
	for {
		b, err := src.ReceiveDatagram()
		if err != nil {
			return
		}
		copies(len(b))
		if err := passDatagram(dst, b); err != nil {
			return
		}
	}
}

// passDatagram sends a datagram, but drops one that is longer than a carrier takes.
func passDatagram(dst carrier.Carrier, b []byte) error {
	if len(b) > carrier.MaxDatagram {
		return nil
	}
	return dst.SendDatagram(b)
}
