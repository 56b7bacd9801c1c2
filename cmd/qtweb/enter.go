//go:build js

package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"syscall/js"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/web/link"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// forgetTimeout bounds how long the server is asked to forget this device.
const forgetTimeout = time.Minute

// What it means that the server lets nobody in.
const (
	linkDenied   = "the server does not accept the link: it is good once, for 2 minutes; get another one with qt web --qr"
	shareDenied  = "the server does not accept the link: the share has ended"
	deviceDenied = "this device gets in no more: its access was revoked, or not used for 90 days; " +
		"get a link with qt web --qr, and open it here"
)

// enter returns the host to which a link leads, or the one that this browser has a key for. With both, it enrolls that key.
func enter(ctx context.Context, s start, n *network) (*host, error) {
	l, err := link.Parse(s.link)
	if err != nil {
		return nil, err
	}
	by := func(key ssh.Signer) *client.Client {
		cfg := config(n, func(key ssh.PublicKey) bool { return auth.HostIDOf(key) == l.HostKey })
		cfg.User, cfg.Keys = l.User, []*auth.UserKey{auth.NewUserKey(key, "the key of this page")}
		return client.New(cfg)
	}
	h := &host{name: l.Host, session: l.Session, share: l.Share, notify: new(wire.Notify), denied: linkDenied}
	if l.Share != nil {
		h.denied = shareDenied
	}
	if l.Seed != nil {
		h.client = by(l.Seed.Signer())
	}
	if !s.device.Truthy() {
		if l.Seed == nil {
			return nil, errors.New("the link is not complete: open it again as it was given to you")
		}
		return h, nil
	}
	device, err := deviceKey(s.device)
	if err != nil {
		return nil, err
	}
	if l.Seed != nil {
		req := &wire.Enroll{
			Kind: auth.KindDevice, Key: device.PublicKey().Marshal(), Name: wire.Printable(s.name, wire.MaxMachine),
		}
		switch _, err := h.client.Enroll(ctx, req); {
		case errors.As(err, new(*wire.Error)): // its login is good for one session
			h.note = "This device is not remembered: " + h.reason(err)
			return h, nil
		case err != nil:
			return nil, errors.New(h.reason(err))
		}
		h.client.Close()
	}
	h.client, h.device, h.denied = by(device), device.PublicKey(), deviceDenied
	h.notify = subscription(s.push)
	return h, nil
}

// subscription returns the subscription of a page, which may have none.
func subscription(v js.Value) *wire.Notify {
	n := new(wire.Notify)
	if !v.Truthy() {
		return n
	}
	for name, field := range map[string]*[]byte{"key": &n.Key, "auth": &n.Auth, "signer": &n.Signer} {
		*field, _ = base64.RawURLEncoding.DecodeString(v.Get(name).String()) // the server checks it
	}
	n.Endpoint = v.Get("endpoint").String()
	return n
}

// tell returns what the page knows of the host.
func (h *host) tell() map[string]any {
	t := map[string]any{"host": h.name, "session": h.session, "device": h.device != nil, "note": h.note}
	if h.share != nil {
		t["share"] = map[string]any{"types": h.share.Types, "until": milliseconds(h.share.Until.Unix())}
	}
	return t
}

// forget has the server forget this device, which ends its sessions here.
func (p *page) forget(h *host) {
	if h.device == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), forgetTimeout)
	defer cancel()
	sum := sha256.Sum256(h.device.Marshal())
	why := ""
	if _, err := h.client.Revoke(ctx, sum[:]); err != nil && !errors.As(err, new(*client.DeniedError)) {
		why = h.reason(err)
	}
	p.post("forgotten", why)
}
