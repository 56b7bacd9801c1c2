package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/quicterm/quicterm/quicterm/hub"
)

const (
	// maxHosts and maxListed bound the hosts that a hub may list, and their bytes as messages.
	maxHosts  = 1 << 15
	maxListed = 16 << 20

	// answerTime bounds how long an answer of the hub or a host takes.
	answerTime = 10 * time.Second

	// maxPending bounds the messages of a stream that nats.go has and the stream has not: less than a window of small ones.
	maxPending = 1 << 14
)

// ErrNoHost is the error of a host that the hub does not know, that is not connected, or that the login may not see.
var ErrNoHost = errors.New("the hub knows no such host that you may see, or the host is not connected: qt hosts lists those that are")

var (
	errBusy   = errors.New("the host refuses: it has as many relayed streams as it takes")
	errAnswer = errors.New("no answer")
	errMany   = errors.New("too many streams by one connection to the hub")
)

// Hosts returns the hosts that are connected to the hub and that the login may see, sorted by name.
func (c *Conn) Hosts(ctx context.Context) ([]hub.Entry, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errAnswer)
	defer cancel()
	var entries []hub.Entry
	request, size := hub.ListRequest{}, 0
	for {
		rand.Read(request.ID[:])
		message, err := c.ask(ctx, &request)
		if err != nil {
			return nil, fmt.Errorf("hub %s: list the hosts: %w", c.url, err)
		}
		page, err := hub.ParsePage(message, request.After)
		if err != nil {
			return nil, fmt.Errorf("hub %s: list the hosts: %w", c.url, err)
		}
		entries = append(entries, page.Entries...)
		if size += len(message); len(entries) > maxHosts || size > maxListed {
			return nil, fmt.Errorf("hub %s lists more than %d hosts", c.url, maxHosts)
		}
		if !page.More {
			return entries, nil
		}
		request.After = entries[len(entries)-1].Name
	}
}

// ask returns the answer to a request for a page.
func (c *Conn) ask(ctx context.Context, request *hub.ListRequest) ([]byte, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	subject := hub.ListSubject(c.user)
	answer := make(chan []byte, 1)
	defer c.wait(hub.AnswerSubject(c.user, hex.EncodeToString(request.ID[:])), fail)()
	defer c.wait(subject, fail)()
	sub, err := c.nats.Subscribe(hub.AnswerSubject(c.user, hex.EncodeToString(request.ID[:])), func(m *nats.Msg) {
		select {
		case answer <- m.Data:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	if err := c.nats.Publish(subject, request.Encode()); err != nil {
		return nil, err
	}
	select {
	case message := <-answer:
		return message, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.done:
		return nil, c.Err()
	}
}

// DialHost opens a stream to the daemon of a host, which has a method CloseWrite. The caller closes it. The error is
// ErrNoHost, among others.
func (c *Conn) DialHost(ctx context.Context, name string) (net.Conn, error) {
	if err := hub.CheckName(name); err != nil {
		return nil, err
	}
	s, err := c.dialHost(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("host %s by hub %s: %w", name, c.url, err)
	}
	return s, nil
}

func (c *Conn) dialHost(ctx context.Context, name string) (*stream, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errAnswer)
	defer cancel()
	call := hub.Call{Window: hub.FirstWindow}
	rand.Read(call.Stream[:])
	if !c.pool.take(hub.FirstWindow) {
		return nil, errMany
	}
	from := hub.FromSubject(name, c.user, call.Stream.String())
	s := newStream(&c.pool, address(name), 0)
	s.publish = c.publish(hub.ToSubject(name, c.user, call.Stream.String()))
	var sub *nats.Subscription
	s.detach = func(*stream) {
		c.mu.Lock()
		delete(c.streams, s)
		sub := sub
		c.mu.Unlock()
		if sub != nil {
			sub.Unsubscribe()
		}
	}
	if err := c.open(s, from, &sub); err != nil {
		s.Close()
		return nil, err
	}
	subject := hub.CallSubject(name, c.user)
	defer c.wait(subject, func(err error) {
		if errors.Is(err, errDenied) {
			err = ErrNoHost
		}
		s.fail(err)
	})()
	if err := c.nats.PublishRequest(subject, from, call.Encode()); err != nil {
		s.Close()
		return nil, err
	}
	select {
	case <-s.opened:
	case <-ctx.Done():
		s.Close()
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	err := s.failed
	s.mu.Unlock()
	if errors.Is(err, errReset) {
		err = errBusy
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// open subscribes to the messages of a stream.
func (c *Conn) open(s *stream, subject string, sub **nats.Subscription) error {
	c.mu.Lock()
	many := len(c.streams) >= hub.MaxStreams
	c.mu.Unlock()
	if many {
		return errMany
	}
	if err := c.attach(s); err != nil {
		return err
	}
	made, err := c.nats.Subscribe(subject, func(m *nats.Msg) {
		if len(m.Data) == 0 { // nobody listens
			s.fail(ErrNoHost)
			return
		}
		s.handle(m.Data)
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	*sub = made
	_, alive := c.streams[s]
	c.mu.Unlock()
	if !alive {
		made.Unsubscribe()
		return c.Err()
	}
	return made.SetPendingLimits(maxPending, 2*hub.MaxWindow)
}
