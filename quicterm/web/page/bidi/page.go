package bidi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// A Page is a page in a window or a tab of a browser.
type Page struct {
	*Browser
	id string
}

// object is one of JSON.
type object = map[string]any

// Open opens a page.
func (b *Browser) Open(ctx context.Context, url string) (*Page, error) {
	var created struct{ Context string }
	if err := b.Call(ctx, "browsingContext.create", object{"type": "window"}, &created); err != nil {
		return nil, err
	}
	p := &Page{b, created.Context}
	return p, p.Navigate(ctx, url)
}

// Close closes the page.
func (p *Page) Close(ctx context.Context) error {
	return p.Call(ctx, "browsingContext.close", object{"context": p.id}, nil)
}

// Navigate opens another address.
func (p *Page) Navigate(ctx context.Context, url string) error {
	return p.Call(ctx, "browsingContext.navigate", object{"context": p.id, "url": url, "wait": "complete"}, nil)
}

// Reload loads the page again.
func (p *Page) Reload(ctx context.Context) error {
	return p.Call(ctx, "browsingContext.reload", object{"context": p.id, "wait": "complete"}, nil)
}

// Prepare has all pages of the browser run a function before their own scripts.
func (b *Browser) Prepare(ctx context.Context, function string) error {
	return b.Call(ctx, "script.addPreloadScript", object{"functionDeclaration": function}, nil)
}

// Eval stores the value of an expression in the page, which may be a promise.
func (p *Page) Eval(ctx context.Context, expression string, value any) error {
	var r struct {
		Type             string
		Result           struct{ Value json.RawMessage }
		ExceptionDetails struct{ Text string }
	}
	err := p.Call(ctx, "script.evaluate", object{
		"expression": "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()",
		"target":     object{"context": p.id}, "awaitPromise": true, "userActivation": true,
	}, &r)
	if err != nil {
		return err
	}
	if r.Type != "success" {
		return fmt.Errorf("%s: %s", expression, r.ExceptionDetails.Text)
	}
	var text string
	if err := json.Unmarshal(r.Result.Value, &text); err != nil || value == nil {
		return err
	}
	return json.Unmarshal([]byte(text), value)
}

// Keys that have no character, as WebDriver has them.
const (
	Control = "\uE009"
	Shift   = "\uE008"
	Enter   = "\uE007"
	Escape  = "\uE00C"
	Tab     = "\uE004"
	Up      = "\uE013"
)

// Type presses and releases keys, one after the other.
func (p *Page) Type(ctx context.Context, keys string) error {
	var actions []object
	for _, key := range keys {
		if key == '\r' {
			key = []rune(Enter)[0]
		}
		actions = append(actions, object{"type": "keyDown", "value": string(key)}, object{"type": "keyUp", "value": string(key)})
	}
	return p.perform(ctx, object{"type": "key", "id": "keyboard", "actions": actions})
}

// Press presses keys together.
func (p *Page) Press(ctx context.Context, keys ...string) error {
	var actions []object
	for _, key := range keys {
		actions = append(actions, object{"type": "keyDown", "value": key})
	}
	for i := range keys {
		actions = append(actions, object{"type": "keyUp", "value": keys[len(keys)-1-i]})
	}
	return p.perform(ctx, object{"type": "key", "id": "keyboard", "actions": actions})
}

// A Point is a place in the page, in its pixels.
type Point struct{ X, Y int }

// Touch puts a finger on a place, moves it over others, and takes it off after the time in milliseconds.
func (p *Page) Touch(ctx context.Context, millis int, first Point, over ...Point) error {
	actions := []object{{"type": "pointerMove", "x": first.X, "y": first.Y}, {"type": "pointerDown", "button": 0}}
	for _, to := range over {
		actions = append(actions, object{"type": "pointerMove", "x": to.X, "y": to.Y, "duration": millis / len(over)})
	}
	if len(over) == 0 {
		actions = append(actions, object{"type": "pause", "duration": millis})
	}
	actions = append(actions, object{"type": "pointerUp", "button": 0})
	return p.perform(ctx, object{"type": "pointer", "id": "finger", "parameters": object{"pointerType": "touch"}, "actions": actions})
}

func (p *Page) perform(ctx context.Context, source object) error {
	return p.Call(ctx, "input.performActions", object{"context": p.id, "actions": []object{source}}, nil)
}

// Resize gives the page a size in its pixels.
func (p *Page) Resize(ctx context.Context, width, height int) error {
	return p.Call(ctx, "browsingContext.setViewport", object{
		"context": p.id, "viewport": object{"width": width, "height": height},
	}, nil)
}

// Picture returns what the page shows, as PNG.
func (p *Page) Picture(ctx context.Context) ([]byte, error) {
	var r struct{ Data string }
	if err := p.Call(ctx, "browsingContext.captureScreenshot", object{"context": p.id}, &r); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(r.Data)
}

// Chromium has Chromium do a command of its own protocol, which other browsers do not have.
func (p *Page) Chromium(ctx context.Context, method string, params any) error {
	var target struct{ Session string }
	if err := p.Call(ctx, "goog:cdp.getSession", object{"context": p.id}, &target); err != nil {
		return err
	}
	return p.Call(ctx, "goog:cdp.sendCommand", object{"method": method, "params": params, "session": target.Session}, nil)
}
