package forward

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A Conn is a connection of which each way can be closed alone, by TCP or a unix socket.
type Conn interface {
	net.Conn
	CloseWrite() error
}

const (
	// Buffers are small until a read fills one: most connections are idle most of the time.
	firstBuffer = 2 << 10
	largeBuffer = maxFrame - headerSize
)

// Counts are of bytes that connections have moved.
type Counts struct{ Sent, Received atomic.Uint64 }

// Join moves the bytes of a connection and a stream both ways until both ways have ended, counts them, and closes both.
// ready reads what comes before the bytes of the stream; an error ends both. It may be nil.
func Join(s *Stream, c Conn, counts *Counts, ready func() error) {
	s.meter.join(s, c)
	var wg sync.WaitGroup
	unwritten := false
	wg.Go(func() {
		if move(s, c, &counts.Sent, s.Reset) == nil {
			s.CloseWrite()
		}
	})
	var err error
	if ready != nil {
		err = ready()
	}
	if err == nil {
		err = move(c, s, &counts.Received, func() { unwritten = true })
	}
	switch {
	case err == nil:
		c.CloseWrite()
	case !unwritten:
		Abort(c)
	}
	wg.Wait()
	s.Reset() // if the connection takes nothing more, the other end need not send it
	c.Close()
}

// move writes what it reads, until the end of that, for which it returns nil, or an error. It calls failed if w fails,
// and if r fails and is the connection.
func move(w io.Writer, r io.Reader, count *atomic.Uint64, failed func()) error {
	buf := make([]byte, firstBuffer)
	for {
		got, err := r.Read(buf)
		if got > 0 {
			if _, err := w.Write(buf[:got]); err != nil {
				failed()
				return err
			}
			count.Add(uint64(got))
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			if _, ofStream := r.(*Stream); !ofStream {
				failed()
			}
			return err
		case got == len(buf) && len(buf) < largeBuffer:
			buf = make([]byte, largeBuffer)
		}
	}
}

// AcceptPause is the time before a listener is tried again after an error, for instance if descriptors run out.
const AcceptPause = 100 * time.Millisecond

// Accept calls take with each connection to a listener, until that is closed.
func Accept(l net.Listener, take func(Conn)) {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			take(c.(Conn))
		case errors.Is(err, net.ErrClosed):
			return
		default:
			time.Sleep(AcceptPause)
		}
	}
}

// Abort ends a connection in a way that its other end takes for an error.
func Abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}
