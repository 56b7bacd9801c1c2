package forwards

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quicterm/quicterm/quicterm/forward"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// flowIdle is how long a flow lasts without a datagram: the least that RFC 4787 (REQ-5) wants of a NAT.
	flowIdle = 2 * time.Minute

	// maxFlows bounds the flows of a forward. The one that is idle for longest makes room for another one.
	maxFlows = 256

	// maxQueued and maxQueuedBytes bound the datagrams of a flow that wait for its stream. More are dropped.
	maxQueued      = 64
	maxQueuedBytes = 256 << 10
)

// Flows are the sources of a forward's datagrams, each with a stream of its own.
type flows struct {
	places  chan struct{} // of flows, also of those that have made room and still wait for the network to end
	dropped atomic.Uint64

	mu     sync.Mutex
	of     map[netip.AddrPort]*flow
	failed string // why the last one had no stream, which the user was told
}

type flow struct {
	source netip.AddrPort
	conn   *net.UDPConn // that gets its datagrams
	queue  chan []byte  // each with its length in front
	queued atomic.Int64 // bytes
	ctx    context.Context
	end    context.CancelFunc
	idle   *time.Timer
	used   time.Time // guarded by mu of flows
}

func newFlows() *flows {
	return &flows{places: make(chan struct{}, 2*maxFlows), of: make(map[netip.AddrPort]*flow)}
}

// receive takes the datagrams that come to a listener, until that is closed, which ends their flows.
func (f *Forwards) receive(conn *net.UDPConn, e *entry) {
	ctx, end := context.WithCancel(f.life)
	defer end()
	buf := make([]byte, forward.MaxDatagram)
	for {
		n, source, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			f.pause(forward.AcceptPause)
			continue
		}
		fl := e.flows.find(source)
		if fl == nil {
			if fl = e.flows.begin(ctx, conn, source); fl != nil {
				f.work.Go(func() { f.flow(fl, e) })
			}
		}
		if fl == nil || !fl.enqueue(buf[:n]) {
			e.flows.dropped.Add(1)
		}
	}
}

// enqueue reports whether there was room for a copy of a datagram.
func (fl *flow) enqueue(datagram []byte) bool {
	if fl.queued.Load()+int64(len(datagram)) > maxQueuedBytes {
		return false
	}
	b := make([]byte, forward.LengthSize+len(datagram))
	copy(b[forward.LengthSize:], datagram)
	forward.PutLength(b)
	select {
	case fl.queue <- b:
		fl.queued.Add(int64(len(datagram)))
		return true
	default:
		return false
	}
}

// find returns the flow of a source, or nil.
func (fs *flows) find(source netip.AddrPort) *flow {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fl := fs.of[source]
	if fl != nil {
		fl.useLocked()
	}
	return fl
}

func (fl *flow) useLocked() {
	fl.used = time.Now()
	fl.idle.Reset(flowIdle)
}

// begin returns a flow for a new source, or nil if too many that made room are still ending.
func (fs *flows) begin(ctx context.Context, conn *net.UDPConn, source netip.AddrPort) *flow {
	select {
	case fs.places <- struct{}{}:
	default:
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.of) >= maxFlows {
		var oldest *flow
		for _, fl := range fs.of {
			if oldest == nil || fl.used.Before(oldest.used) {
				oldest = fl
			}
		}
		fs.removeLocked(oldest)
	}
	fl := &flow{source: source, conn: conn, queue: make(chan []byte, maxQueued), used: time.Now()}
	fl.ctx, fl.end = context.WithCancel(ctx)
	fl.idle = time.AfterFunc(flowIdle, func() { fs.remove(fl) })
	fs.of[source] = fl
	return fl
}

// remove ends a flow: the next datagram of its source begins another one.
func (fs *flows) remove(fl *flow) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.removeLocked(fl)
}

func (fs *flows) removeLocked(fl *flow) {
	if fs.of[fl.source] == fl {
		delete(fs.of, fl.source)
	}
	fl.idle.Stop()
	fl.end()
}

// flow moves the datagrams of a source until it ends, which it does when the server's end of it does.
func (f *Forwards) flow(fl *flow, e *entry) {
	fs := e.flows
	e.open.Add(1)
	defer func() {
		fs.remove(fl)
		e.open.Add(-1)
		<-fs.places
	}()
	stream, err := f.dial(e.Target)
	if err != nil {
		f.failFlow(e, err)
		return
	}
	defer stream.Reset()
	defer context.AfterFunc(fl.ctx, stream.Reset)()
	var sending sync.WaitGroup
	defer sending.Wait()
	defer fl.end()
	sending.Go(func() { fl.send(stream, e) })
	if err = read(stream, new(wire.Done)); err != nil {
		f.failFlow(e, err)
		return
	}
	fs.mu.Lock()
	fs.failed = ""
	fs.mu.Unlock()
	var buf []byte
	for {
		b, err := forward.ReadDatagram(stream, buf)
		if err != nil || fl.ctx.Err() != nil {
			return
		}
		fs.find(fl.source) // it is used
		if _, err := fl.conn.WriteToUDPAddrPort(b, fl.source); err != nil {
			fs.dropped.Add(1)
		} else {
			e.counts.Received.Add(uint64(len(b)))
		}
		buf = b
	}
}

// send sends what the source sends.
func (fl *flow) send(stream *forward.Stream, e *entry) {
	for {
		select {
		case <-fl.ctx.Done():
			return
		case b := <-fl.queue:
			if _, err := stream.Write(b); err != nil {
				stream.Reset()
				return
			}
			fl.queued.Add(int64(forward.LengthSize - len(b)))
			e.counts.Sent.Add(uint64(len(b) - forward.LengthSize))
		}
	}
}

// failFlow tells why there is no flow, once for all sources: programs that get no answer send again.
func (f *Forwards) failFlow(e *entry, err error) {
	e.flows.mu.Lock()
	again := e.flows.failed == err.Error()
	e.flows.failed = err.Error()
	e.flows.mu.Unlock()
	if !again {
		f.fail(nil, nil, e, e.Target, err)
	}
}
