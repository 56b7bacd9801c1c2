package bidi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
)

// A Page is a page in a window or a tab of a browser.
type Page struct {
	*Browser
	id      string
	fingers int // that touch it
}

// object is one of JSON.
type object = map[string]any

// Open opens a page.
func (b *Browser) Open(ctx context.Context, url string) (*Page, error) {
	var created struct{ Context string }
	if err := b.Call(ctx, "browsingContext.create", object{"type": "window"}, &created); err != nil {
		return nil, err
	}
	p := &Page{Browser: b, id: created.Context}
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

// Prepare has all pages of the browser run a function before their own scripts, until undo.
func (b *Browser) Prepare(ctx context.Context, function string) (undo func(context.Context) error, err error) {
	var added struct{ Script string }
	err = b.Call(ctx, "script.addPreloadScript", object{"functionDeclaration": function}, &added)
	return func(ctx context.Context) error {
		return b.Call(ctx, "script.removePreloadScript", object{"script": added.Script}, nil)
	}, err
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
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Touch has a finger at each of the points, where it was put or has moved, and takes all others off.
func (p *Page) Touch(ctx context.Context, points ...Point) error {
	var sources []object
	for i := range max(p.fingers, len(points)) {
		actions := []object{{"type": "pointerUp", "button": 0}}
		if i < len(points) {
			actions = []object{{"type": "pointerMove", "x": math.Round(points[i].X), "y": math.Round(points[i].Y)}}
		}
		if i >= p.fingers {
			actions = append(actions, object{"type": "pointerDown", "button": 0})
		}
		sources = append(sources, object{
			"type": "pointer", "id": fmt.Sprint("finger", i), "parameters": object{"pointerType": "touch"}, "actions": actions,
		})
	}
	p.fingers = len(points)
	return p.perform(ctx, sources...)
}

func (p *Page) perform(ctx context.Context, sources ...object) error {
	return p.Call(ctx, "input.performActions", object{"context": p.id, "actions": sources}, nil)
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
