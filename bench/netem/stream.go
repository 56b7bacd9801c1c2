package netem

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// segmentSize is how many bytes of a stream a packet carries, and headerSize what is around
	// them.
	segmentSize = 1400
	headerSize  = 40

	// maxFlight is how many bytes of a stream are in the network at most: there is no other
	// congestion control.
	maxFlight = 48 << 10

	// maxUnsent is how many bytes may wait to be sent before Write blocks.
	maxUnsent = 16 << 10

	// firstTimeout is how long after a lost packet it is sent again, dialTimeout the same for the
	// first of a stream. It doubles, up to maxTimeout.
	firstTimeout = 300 * time.Millisecond
	dialTimeout  = time.Second
	maxTimeout   = 2 * time.Minute
)

// RouteStreams sets the links of streams. Without it they take those of packets.
func (n *Net) RouteStreams(route func(from, to netip.AddrPort) *Link) {
	n.Do(func() { n.routeStreams = route })
}

// ListenStream returns a listener for streams at an address.
func (n *Net) ListenStream(addr netip.AddrPort) net.Listener {
	l := &streamListener{net: n, addr: addr, accepted: make(chan net.Conn), closed: make(chan struct{})}
	n.Do(func() { n.listeners[addr] = l })
	return l
}

// DialStream connects a stream, which behaves much like a TCP connection, from an address to a
// listener.
func (n *Net) DialStream(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.port++
	local := netip.AddrPortFrom(from, n.port)
	n.mu.Unlock()
	up, down := newHalf(n, local, to), newHalf(n, to, local)
	up.reverse, down.reverse = down, up
	var listener *streamListener
	for timeout := dialTimeout; ; timeout *= 2 {
		arrived := make(chan struct{})
		if at, ok := n.send(local, to, 0); ok {
			n.under.add(at, func() {
				n.Do(func() { listener = n.listeners[to] })
				if at, ok := n.send(to, local, 0); ok {
					n.under.add(at, func() { close(arrived) })
				}
			})
		}
		select {
		case <-arrived:
		case <-time.After(timeout):
			continue
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		break
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: syscall.ECONNREFUSED}
	if listener == nil {
		return nil, refused
	}
	client, server := newStream(n, down, up), newStream(n, up, down)
	select {
	case listener.accepted <- server:
		return client, nil
	case <-listener.closed:
	case <-ctx.Done():
	}
	client.Close()
	server.Close()
	return nil, refused
}

// Streams returns how many ends of streams are open.
func (n *Net) Streams() (open int) {
	n.Do(func() { open = n.streams })
	return open
}

// send offers a packet of a stream to its link, and returns when it arrives, if it does.
func (n *Net) send(from, to netip.AddrPort, size int) (at time.Time, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	route := n.routeStreams
	if route == nil {
		route = n.route
	}
	link := route(from, to)
	if link == nil {
		return at, false
	}
	arrivals := link.Send(time.Now(), headerSize+size)
	if len(arrivals) == 0 {
		return at, false
	}
	return arrivals[0], true
}

// A streamListener accepts streams.
type streamListener struct {
	net      *Net
	addr     netip.AddrPort
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *streamListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *streamListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.Do(func() {
			if l.net.listeners[l.addr] == l {
				delete(l.net.listeners, l.addr)
			}
		})
	})
	return nil
}

func (l *streamListener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }

// A half is one direction of a stream. Packets that are lost are sent again, and those behind
// them wait.
type half struct {
	net      *Net
	from, to netip.AddrPort
	reverse  *half

	mu      sync.Mutex
	changed *sync.Cond // of mu
	err     error      // of both ends

	// The sender's end:
	unsent  []byte
	flight  int       // bytes
	latest  time.Time // when the last packet arrives
	closed  bool      // nothing comes after unsent
	ended   bool      // the end is in the network
	timeout time.Duration
	waiting bool // to send again
	writeBy time.Time

	// The receiver's end:
	in     []byte
	eof    bool
	gone   bool // nobody reads any more
	readBy time.Time
}

func newHalf(n *Net, from, to netip.AddrPort) *half {
	h := &half{net: n, from: from, to: to, timeout: firstTimeout}
	h.changed = sync.NewCond(&h.mu)
	return h
}

// pumpLocked sends what may be in the network.
func (h *half) pumpLocked() {
	for !h.waiting && h.err == nil && h.flight < maxFlight && (len(h.unsent) > 0 || h.closed && !h.ended) {
		n := min(len(h.unsent), segmentSize)
		data, last := h.unsent[:n:n], h.closed && n == len(h.unsent)
		at, ok := h.net.send(h.from, h.to, n)
		if !ok {
			h.waiting = true
			h.net.under.add(time.Now().Add(h.timeout), func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.waiting = false
				h.pumpLocked()
			})
			h.timeout = min(2*h.timeout, maxTimeout)
			return
		}
		if at.Before(h.latest) {
			at = h.latest
		}
		h.net.under.add(at, func() { h.arrive(data, last) })
		h.timeout, h.latest = firstTimeout, at
		h.unsent, h.flight, h.ended = h.unsent[n:], h.flight+n, last
	}
	h.changed.Broadcast()
}

// arrive handles a packet at the receiver's end.
func (h *half) arrive(data []byte, last bool) {
	h.mu.Lock()
	h.flight -= len(data)
	h.in, h.eof = append(h.in, data...), h.eof || last
	reset := h.gone && len(data) > 0
	h.pumpLocked()
	h.mu.Unlock()
	if !reset {
		return
	}
	if at, ok := h.net.send(h.to, h.from, 0); ok {
		h.net.under.add(at, func() {
			h.fail(syscall.ECONNRESET)
			h.reverse.fail(syscall.ECONNRESET)
		})
	}
}

func (h *half) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	h.changed.Broadcast()
}

// waitLocked waits until something has changed, or returns why it is in vain.
func (h *half) waitLocked(deadline time.Time) error {
	if !deadline.IsZero() && !time.Now().Before(deadline) {
		return os.ErrDeadlineExceeded
	}
	h.changed.Wait()
	return nil
}

// setDeadline sets one of the deadlines.
func (h *half) setDeadline(which *time.Time, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*which = t
	if !t.IsZero() {
		time.AfterFunc(time.Until(t), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.changed.Broadcast()
		})
	}
	h.changed.Broadcast()
}

// A stream is one end of a stream.
type stream struct {
	in, out *half
	once    sync.Once
}

func newStream(n *Net, in, out *half) *stream {
	n.Do(func() { n.streams++ })
	return &stream{in: in, out: out}
}

func (s *stream) Read(b []byte) (int, error) {
	h := s.in
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.in) == 0 {
		switch {
		case h.gone:
			return 0, net.ErrClosed
		case h.err != nil:
			return 0, h.err
		case h.eof:
			return 0, io.EOF
		}
		if err := h.waitLocked(h.readBy); err != nil {
			return 0, err
		}
	}
	n := copy(b, h.in)
	h.in = h.in[n:]
	return n, nil
}

func (s *stream) Write(b []byte) (int, error) {
	h := s.out
	h.mu.Lock()
	defer h.mu.Unlock()
	for written := 0; ; {
		switch {
		case h.closed:
			return written, net.ErrClosed
		case h.err != nil:
			return written, h.err
		case len(h.unsent) < maxUnsent:
			n := min(len(b)-written, segmentSize)
			h.unsent = append(h.unsent, b[written:written+n]...)
			h.pumpLocked()
			if written += n; written == len(b) {
				return written, nil
			}
			continue
		}
		if err := h.waitLocked(h.writeBy); err != nil {
			return written, err
		}
	}
}

// CloseWrite ends the stream in this direction.
func (s *stream) CloseWrite() error {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.out.closed = true
	s.out.pumpLocked()
	return nil
}

// Close ends the stream. What was written still arrives.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.CloseWrite()
		s.in.mu.Lock()
		s.in.gone, s.in.in = true, nil
		s.in.changed.Broadcast()
		s.in.mu.Unlock()
		s.in.net.Do(func() { s.in.net.streams-- })
	})
	return nil
}

func (s *stream) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(s.out.from) }
func (s *stream) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.out.to) }

func (s *stream) SetDeadline(t time.Time) error {
	s.SetReadDeadline(t)
	return s.SetWriteDeadline(t)
}

func (s *stream) SetReadDeadline(t time.Time) error {
	s.in.setDeadline(&s.in.readBy, t)
	return nil
}

func (s *stream) SetWriteDeadline(t time.Time) error {
	s.out.setDeadline(&s.out.writeBy, t)
	return nil
}
