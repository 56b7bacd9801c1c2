package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// dialTime bounds how long a server tries to reach a target: as long as Linux does.
	dialTime = 2 * time.Minute

	// maxMessage bounds the message in front of a stream, in bytes: names, and the path of a socket.
	maxMessage = 4 << 10

	// maxListeners bounds the listeners of a side pipe. Each may have an address of IPv4 and one of IPv6.
	maxListeners = 256

	// maxFlows bounds the flows of datagrams of a side pipe: each has buffers of 128 KiB, which the windows do not count.
	maxFlows = 512
)

// A server is the server's end of a side pipe.
type server struct {
	life    context.Context
	session *Session
	rules   permit.Rules
	agent   ListenAgent
	work    sync.WaitGroup
	places  chan struct{} // of listeners
	flows   chan struct{} // places of flows of datagrams
}

// A ListenAgent listens where the sessions of a client look for its ssh agent.
type ListenAgent func(wire.AgentID) (net.Listener, error)

// Serve does what the client at a side pipe asks for, as far as the rules permit it, until the client or the context
// ends. When it returns, it listens nowhere any more.
func Serve(ctx context.Context, r io.ReadCloser, w io.WriteCloser, rules permit.Rules, agent ListenAgent) error {
	session, err := NewSession(r, w, false)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, session.Close)()
	life, end := context.WithCancel(ctx)
	defer end()
	s := &server{
		life: life, session: session, rules: rules, agent: agent,
		places: make(chan struct{}, maxListeners), flows: make(chan struct{}, maxFlows),
	}
	for {
		stream, err := session.Accept()
		if err != nil {
			session.Close()
			end()
			s.work.Wait()
			return nil // the client has left
		}
		s.work.Go(func() { s.serve(stream) })
	}
}

func (s *server) serve(stream *Stream) {
	m, err := wire.Read(stream, maxMessage)
	if err != nil {
		stream.Reset()
		return
	}
	var dial wire.Dial
	var listen wire.Listen
	var offer wire.OfferAgent
	switch {
	case m.Decode(&dial) == nil:
		s.dial(stream, &dial)
	case m.Decode(&listen) == nil:
		s.listen(stream, &listen)
	case m.Decode(&offer) == nil:
		s.offerAgent(stream, &offer)
	default:
		refuse(stream, errors.New("the server does not know what is asked for: it may be older than this client"))
	}
}

// refuse ends a stream with the reason.
func refuse(stream *Stream, err error) {
	wire.Send(stream, &wire.Error{Text: Reason(err)})
	stream.Finish()
}

func (s *server) dial(stream *Stream, req *wire.Dial) {
	network, address, err := "tcp", net.JoinHostPort(req.Host, strconv.Itoa(int(req.Port))), error(nil)
	if req.Path != "" {
		network, address, err = "unix", req.Path, s.rules.Socket(false, req.Path)
	} else {
		err = s.rules.Dial(req.Host, req.Port)
		switch {
		case req.UDP && req.Host == "localhost": // nothing says at which address of it a server listens: most do at this one
			network = "udp4"
		case req.UDP:
			network = "udp"
		}
	}
	udp := req.UDP && req.Path == ""
	if udp && err == nil {
		select {
		case s.flows <- struct{}{}:
			defer func() { <-s.flows }()
		default:
			err = fmt.Errorf("too many flows of datagrams: %d at most", maxFlows)
		}
	}
	var c net.Conn
	if err == nil {
		c, err = (&net.Dialer{Timeout: dialTime}).DialContext(s.life, network, address)
	}
	if err != nil {
		refuse(stream, err)
		return
	}
	if err := wire.Send(stream, &wire.Done{}); err != nil {
		stream.Reset()
		c.Close()
		return
	}
	if udp {
		joinDatagrams(stream, c)
		return
	}
	Join(stream, c.(Conn), new(Counts), nil)
}

func (s *server) listen(stream *Stream, req *wire.Listen) {
	s.accepting(stream, req.ID, func() ([]net.Listener, wire.Body, error) {
		listeners, err := s.open(req)
		answer := new(wire.Listening)
		for _, l := range listeners {
			if t, ok := l.Addr().(*net.TCPAddr); ok {
				answer.Port, answer.Loopback = uint16(t.Port), t.IP.IsLoopback()
			}
		}
		return listeners, answer, err
	})
}

func (s *server) offerAgent(stream *Stream, req *wire.OfferAgent) {
	s.accepting(stream, req.ID, func() ([]net.Listener, wire.Body, error) {
		id := wire.ParseAgentID(req.Agent)
		if err := s.rules.Agent(); err != nil {
			return nil, nil, err
		}
		if id == (wire.AgentID{}) {
			return nil, nil, errors.New("an agent without an id")
		}
		l, err := s.agent(id)
		if err != nil {
			return nil, nil, err
		}
		return []net.Listener{l}, &wire.Done{}, nil
	})
}

// accepting opens listeners, answers, and accepts what connects to them until the stream ends.
func (s *server) accepting(stream *Stream, id uint32, open func() ([]net.Listener, wire.Body, error)) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		refuse(stream, errors.New("there are too many listeners"))
		return
	}
	listeners, answer, err := open()
	if err != nil {
		refuse(stream, err)
		return
	}
	for _, l := range listeners {
		defer l.Close()
	}
	if wire.Send(stream, answer) != nil {
		stream.Reset()
		return
	}
	for _, l := range listeners {
		s.work.Go(func() { s.accept(l, id) })
	}
	io.Copy(io.Discard, stream) // the listener ends with it
	stream.Reset()
}

// open returns the listeners that a client asks for, at one address at least.
func (s *server) open(req *wire.Listen) (listeners []net.Listener, err error) {
	if req.Path != "" {
		l, err := s.openSocket(req.Path)
		if err != nil {
			return nil, err
		}
		return []net.Listener{l}, nil
	}
	if err := s.rules.Listen(req.Host, req.Port); err != nil {
		return nil, err
	}
	port := int(req.Port)
	for _, host := range s.rules.Bind(req.Host) {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		switch {
		case err == nil:
			port = l.Addr().(*net.TCPAddr).Port // the others have the same, if it is any
			listeners = append(listeners, l)
		case len(listeners) == 0: // a machine may have no IPv6
			return nil, err
		}
	}
	return listeners, nil
}

func (s *server) openSocket(path string) (net.Listener, error) {
	if err := s.rules.Socket(true, path); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && s.rules.Unlink && info.Mode()&fs.ModeSocket != 0 {
		os.Remove(path)
	}
	return net.Listen("unix", path)
}

// accept opens a stream for each connection to a listener, until that is closed.
func (s *server) accept(l net.Listener, id uint32) {
	Accept(l, func(c Conn) {
		stream, err := s.session.Open(s.life)
		if err != nil {
			Abort(c)
			return
		}
		s.work.Go(func() {
			if wire.Send(stream, &wire.Accepted{ID: id}) != nil {
				stream.Reset()
				Abort(c)
				return
			}
			Join(stream, c, new(Counts), nil)
		})
	})
}

// Reason returns what is wrong with an address, without the names of system calls.
func Reason(err error) string {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		err = many.Unwrap()[0]
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "no such host"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if op.Timeout() {
			return "no answer"
		}
		return op.Err.Error()
	}
	return err.Error()
}
