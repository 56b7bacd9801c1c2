package bidi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// A connection brings commands to a browser, and their results back.
type connection struct {
	ws *websocket.Conn

	mu      sync.Mutex
	last    int
	waiting map[int]chan answer
	ended   error
}

// An answer is one to a command, or an event.
type answer struct {
	ID      int
	Type    string
	Result  json.RawMessage
	Error   string
	Message string
}

func connect(ctx context.Context, url string) (*connection, error) {
	ws, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1) // pictures
	c := &connection{ws: ws, waiting: make(map[int]chan answer)}
	go c.receive()
	return c, nil
}

// receive receives answers until the connection ends.
func (c *connection) receive() {
	for {
		var a answer
		err := wsjson.Read(context.Background(), c.ws, &a)
		c.mu.Lock()
		if err != nil {
			c.ended = errors.Join(errors.New("the browser has ended"), err)
			for _, w := range c.waiting {
				close(w)
			}
			c.mu.Unlock()
			return
		}
		if w, ok := c.waiting[a.ID]; ok && a.Type != "event" {
			w <- a
			delete(c.waiting, a.ID)
		}
		c.mu.Unlock()
	}
}

func (c *connection) close() { c.ws.CloseNow() }

// Call has the browser do a command, and stores its result, unless that is nil.
func (c *connection) Call(ctx context.Context, method string, params, result any) error {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return c.ended
	}
	c.last++
	id, w := c.last, make(chan answer, 1)
	c.waiting[id] = w
	c.mu.Unlock()
	err := wsjson.Write(ctx, c.ws, map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a, ok := <-w:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", method, c.ended)
		case a.Error != "":
			return fmt.Errorf("%s: %s: %s", method, a.Error, a.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}
