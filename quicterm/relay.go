//go:build linux || darwin

package quicterm

import (
	"io"
	"sync"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// relay passes a holder's answer to the client and then all that either says to
// the other, without a look at it, until one of them is done.
func (g *guest) relay(answer wire.Message, c *carrier.Unix) error {
	defer c.Close()
	if err := wire.Write(g.link, answer); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		copyDatagrams(c, g.link)
	})
	wg.Go(func() {
		copyDatagrams(g.link, c)
	})
	wg.Go(func() {
		copyStream(c, g.link)
		c.Close() // the client is gone: so is its carrier
	})
	copyStream(g.link, c)
	g.linger()
	g.link.Close()
	wg.Wait()
	return nil
}

// A session at rest has a small buffer in each direction; one that is busy
// borrows a large one.
const (
	smallCopy = 2 << 10
	largeCopy = 64 << 10
)

var largeCopies = sync.Pool{New: func() any { return new([largeCopy]byte) }}

// copyStream copies until either end fails or is done.
func copyStream(dst io.Writer, src io.Reader) {
	small := make([]byte, smallCopy)
	var large *[largeCopy]byte
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
			large = largeCopies.Get().(*[largeCopy]byte)
			buf = large[:]
		case large != nil && n < len(small):
			largeCopies.Put(large)
			large, buf = nil, small
		}
	}
}

// copyDatagrams copies until either end fails or is done.
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
