package websocket

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"syscall/js"
	"time"
)

const (
	// maxQueued bounds the bytes that were received and not read: more than the other end sends before an answer. A browser
	// has no way to stop the other end.
	maxQueued = 8 << 20

	// maxUnsent bounds the bytes that the browser takes and has not sent, and drainTime is how often they are counted.
	maxUnsent = 64 << 10
	drainTime = 5 * time.Millisecond
)

var (
	errRefused  = errors.New("WebSocket: the server cannot be reached, or refuses")
	errMuch     = errors.New("WebSocket: the peer sends more than is read")
	errNotBytes = errors.New("WebSocket: the peer sends text, or a message that is too long")
)

// A conn is a WebSocket of the browser as a connection.
type conn struct {
	ws     js.Value
	funcs  []js.Func
	opened chan struct{}
	change chan struct{} // has an element when something has come

	mu       sync.Mutex
	messages [][]byte
	queued   int // bytes of messages
	err      error
	closed   chan struct{} // when there is an error
}

// Open connects to the WebSocket at a URL, wss: or ws:, unless ctx ends before. The browser dials.
func Open(
	ctx context.Context, url string, _ func(ctx context.Context, network, address string) (net.Conn, error),
) (net.Conn, error) {
	socket, err := construct(url)
	if err != nil {
		return nil, err
	}
	c := &conn{
		ws:     socket,
		opened: make(chan struct{}), change: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	c.ws.Set("binaryType", "arraybuffer")
	c.on("open", func(js.Value) { close(c.opened) })
	c.on("message", func(event js.Value) { c.receive(event.Get("data")) })
	c.on("close", func(js.Value) { c.end(io.EOF) })
	select {
	case <-c.opened:
		return c, nil
	case <-c.closed:
		return nil, errRefused
	case <-ctx.Done():
		c.Close()
		return nil, context.Cause(ctx)
	}
}

// construct returns a WebSocket of the browser, or what that throws, as for a URL that is none.
func construct(url string) (socket js.Value, err error) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case js.Error:
			err = thrown
		default:
			panic(thrown)
		}
	}()
	return js.Global().Get("WebSocket").New(url), nil
}

func (c *conn) on(event string, f func(js.Value)) {
	callback := js.FuncOf(func(_ js.Value, args []js.Value) any {
		f(args[0])
		return nil
	})
	c.funcs = append(c.funcs, callback)
	c.ws.Call("addEventListener", event, callback)
}

// end ends the connection. The first error is that of all calls.
func (c *conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.closed)
	for i, event := range []string{"open", "message", "close"} {
		c.ws.Call("removeEventListener", event, c.funcs[i])
	}
	c.ws.Call("close")
	time.AfterFunc(0, func() { // not in one of them
		for _, f := range c.funcs {
			f.Release()
		}
	})
}

func (c *conn) receive(data js.Value) {
	if data.Type() != js.TypeObject || data.Get("byteLength").Int() > maxMessage {
		c.end(errNotBytes)
		return
	}
	b := make([]byte, data.Get("byteLength").Int())
	js.CopyBytesToGo(b, js.Global().Get("Uint8Array").New(data))
	c.mu.Lock()
	c.messages = append(c.messages, b)
	c.queued += len(b)
	much := c.queued > maxQueued
	c.mu.Unlock()
	if much {
		c.end(errMuch)
	}
	select {
	case c.change <- struct{}{}:
	default:
	}
}

// Read reads from the messages that have come. What came before the end is read before it.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		for len(c.messages) > 0 {
			n := copy(b, c.messages[0])
			c.queued -= n
			if c.messages[0] = c.messages[0][n:]; len(c.messages[0]) == 0 {
				c.messages = c.messages[1:]
			}
			if n > 0 || len(b) == 0 {
				c.mu.Unlock()
				return n, nil
			}
		}
		err := c.err
		c.mu.Unlock()
		if err != nil {
			return 0, err
		}
		select {
		case <-c.change:
		case <-c.closed:
		}
	}
}

// Write sends messages. It blocks while the browser has much that is not sent.
func (c *conn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		for c.ws.Get("bufferedAmount").Int() > maxUnsent {
			select {
			case <-c.closed:
			case <-time.After(drainTime):
			}
			if c.failed() != nil {
				break // what is not sent is counted for ever
			}
		}
		if err := c.failed(); err != nil {
			return n, err
		}
		part := b[n:min(n+maxMessage, len(b))]
		array := js.Global().Get("Uint8Array").New(len(part))
		js.CopyBytesToJS(array, part)
		c.ws.Call("send", array)
		n += len(part)
	}
	return n, nil
}

// failed returns why nothing can be sent any more, or nil.
func (c *conn) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == io.EOF {
		return syscall.EPIPE
	}
	return c.err
}

// Close ends the connection. It does not block.
func (c *conn) Close() error {
	c.end(net.ErrClosed)
	return nil
}

// The addresses are not known, and there are no deadlines.

func (c *conn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *conn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *conn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *conn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
