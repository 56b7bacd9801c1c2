package node

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/nats-io/nats.go"

	"github.com/quicterm/quicterm/quicterm/hub"
)

const (
	// maxQueued bounds the messages to a host that nats.go has and the streams have not, and maxQueuedBytes their bytes: a
	// stream takes them at once, so that only a hub that ignores the windows comes so far. Then messages are lost, and
	// their streams end.
	maxQueued      = 1 << 17
	maxQueuedBytes = maxUnread + 16<<20

	// maxCalls bounds the calls that wait to be answered. More are lost.
	maxCalls = 1 << 12
)

var errStop = errors.New("the host has left the hub")

// A streamKey says which stream a message is of.
type streamKey struct {
	user   hub.UserID
	stream hub.StreamID
}

// Serve announces a host and hands each stream that is relayed to it to accept, which must not block and owns the stream.
// The caller is the person's, for limits. Serve returns when ctx ends, with nil, or when the connection does, or if the hub
// knows the login under another name. Then all streams have ended.
func (c *Conn) Serve(ctx context.Context, entry hub.Entry, accept func(stream net.Conn, caller hub.UserID)) error {
	message, err := entry.Encode()
	if err != nil {
		return fmt.Errorf("announce this host at hub %s: %w", c.url, err)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	calls, data := hub.CallSubject(entry.Name, hub.Any), hub.ToSubject(entry.Name, hub.Any, hub.Any)
	announce := hub.AnnounceSubject(entry.Name)
	for _, subject := range []string{calls, data, announce} {
		defer c.wait(subject, func(err error) {
			if errors.Is(err, errDenied) {
				err = fmt.Errorf("hub %s does not know this key as host %s: its list needs a line \"host %s KEY\"", c.url, entry.Name, entry.Name)
			}
			fail(hubError{err})
		})()
	}
	subscribe := func(subject string, messages, bytes int, take func(*nats.Msg)) (*nats.Subscription, error) {
		sub, err := c.nats.Subscribe(subject, take)
		if err == nil {
			err = sub.SetPendingLimits(messages, bytes)
		}
		return sub, err
	}
	subData, err := subscribe(data, maxQueued, maxQueuedBytes, func(m *nats.Msg) { c.deliver(entry.Name, m) })
	if err != nil {
		return fmt.Errorf("hub %s: %w", c.url, err)
	}
	defer subData.Unsubscribe()
	subCalls, err := subscribe(calls, maxCalls, maxCalls*hub.MaxTag, func(m *nats.Msg) { c.answer(entry.Name, m, accept) })
	if err != nil {
		return fmt.Errorf("hub %s: %w", c.url, err)
	}
	defer c.stopCalls()
	defer subCalls.Unsubscribe()
	if err := c.nats.Publish(announce, message); err != nil {
		return fmt.Errorf("hub %s: %w", c.url, err)
	}
	select {
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		if err := (hubError{}); errors.As(context.Cause(ctx), &err) {
			return err.error
		}
		return nil
	}
}

// A hubError is an error for which Serve ends on its own.
type hubError struct{ error }

// deliver passes a message to its stream. If there is none, the other end learns that.
func (c *Conn) deliver(host string, m *nats.Msg) {
	user, id, err := hub.ParseTo(m.Subject)
	if err != nil {
		return
	}
	c.mu.Lock()
	s := c.calls[streamKey{user, id}]
	c.mu.Unlock()
	if s != nil {
		s.handle(m.Data)
		return
	}
	if f, err := hub.ParseFrame(m.Data); err == nil && (f.Kind == hub.Data || f.Kind == hub.Fin) {
		c.nats.Publish(hub.FromSubject(host, user.String(), id.String()), hub.ResetFrame())
	}
}

// answer opens a stream for a call, or refuses it.
func (c *Conn) answer(host string, m *nats.Msg, accept func(stream net.Conn, caller hub.UserID)) {
	user, err := hub.ParseCaller(m.Subject)
	if err != nil {
		return
	}
	call, err := hub.ParseCall(m.Data)
	if err != nil {
		return
	}
	key := streamKey{user, call.Stream}
	publish := c.publish(hub.FromSubject(host, user.String(), call.Stream.String()))
	if !c.pool.take(hub.FirstWindow) {
		publish(hub.ResetFrame())
		return
	}
	s := newStream(&c.pool, address(user.String()), uint64(call.Window))
	s.publish = publish
	s.known = true
	close(s.opened)
	s.detach = func(*stream) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.streams, s)
		if c.calls[key] == s {
			delete(c.calls, key)
			if c.callers[user]--; c.callers[user] == 0 {
				delete(c.callers, user)
			}
		}
	}
	if ok, known := c.admit(key, s); !ok {
		c.pool.give(hub.FirstWindow)
		if !known {
			publish(hub.ResetFrame())
		}
		return
	}
	s.mu.Lock()
	s.sendLocked(s.flow.Grant())
	s.mu.Unlock()
	accept(s, user)
}

// admit counts a stream of a caller. It fails if that has as many as it may, or the stream is known already.
func (c *Conn) admit(key streamKey, s *stream) (ok, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[key] != nil {
		return false, true
	}
	if c.err != nil || c.callers[key.user] >= hub.MaxStreams {
		return false, false
	}
	c.calls[key] = s
	c.callers[key.user]++
	c.streams[s] = struct{}{}
	return true, false
}

// stopCalls ends the streams of a host.
func (c *Conn) stopCalls() {
	c.mu.Lock()
	var streams []*stream
	for _, s := range c.calls {
		streams = append(streams, s)
	}
	c.mu.Unlock()
	for _, s := range streams {
		s.fail(errStop)
	}
}
