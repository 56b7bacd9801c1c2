package carriertest

import (
	"bytes"
	"io"
	"net"
	"sync"

	"github.com/quicterm/quicterm/migrate/carrier"
)

// maxQueuedDatagrams is how many datagrams a carrier in memory queues in each
// direction. It drops the others. That is more than a program answers at once to what is typed in an outage.
const maxQueuedDatagrams = 256

// Pair returns the two ends of a carrier in memory, which works on the virtual time of package synctest. Its stream
// buffers nothing: a Write returns when all of it was read. Closing one end closes both.
func Pair() (a, b carrier.Carrier) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	ab, ba := make(chan []byte, maxQueuedDatagrams), make(chan []byte, maxQueuedDatagrams)
	closed := make(chan struct{})
	closeBoth := sync.OnceFunc(func() {
		close(closed)
		ar.CloseWithError(net.ErrClosed)
		br.CloseWithError(net.ErrClosed)
		aw.CloseWithError(io.EOF)
		bw.CloseWithError(io.EOF)
	})
	return &memory{ar, aw, ba, ab, closed, closeBoth}, &memory{br, bw, ab, ba, closed, closeBoth}
}

// A memory is one end of a carrier in memory.
type memory struct {
	*io.PipeReader
	w       *io.PipeWriter
	in, out chan []byte
	closed  chan struct{}
	close   func()
}

func (m *memory) Write(b []byte) (int, error) { return m.w.Write(b) }
func (m *memory) Datagrams() bool             { return true }
func (m *memory) Close() error                { m.close(); return nil }

func (m *memory) SendDatagram(b []byte) error {
	select {
	case <-m.closed:
		return net.ErrClosed
	default:
	}
	if len(b) == 0 {
		return nil // dropped, as by package unixsock
	}
	select {
	case m.out <- bytes.Clone(b):
	default: // dropped
	}
	return nil
}

func (m *memory) ReceiveDatagram() ([]byte, error) {
	select {
	case <-m.closed:
		return nil, net.ErrClosed
	case b := <-m.in:
		return b, nil
	}
}
