//go:build linux || darwin

package push

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/machine/enrolled"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// maxDevices is how many devices a session tells, at most: those of one person.
	maxDevices = 8

	// A device gets maxBurst messages of a session at once, and then one each interval: something that rings all the time
	// tells no more.
	maxBurst = 3
	interval = time.Minute

	// sendTime bounds how long a message takes to the push service.
	sendTime = 10 * time.Second

	// keepTime is how many seconds a push service keeps a message for a device that is away. Later, it is no news.
	keepTime = "14400"
)

// A Message is what a device shows. Its service worker reads it (notice.ts of the page).
type Message struct {
	Session string `json:"session"` // id
	Name    string `json:"name"`    // of the session
	Text    string `json:"text"`
}

// A Sender sends the messages of a session to the devices that have asked for them.
type Sender struct {
	keys    string // the directory with the files of the devices
	log     *slog.Logger
	client  *http.Client
	sending sync.WaitGroup

	mu      sync.Mutex
	devices map[string]*subscription // by the public key of the device
}

// New returns a Sender without devices, which sends by the client: see [NewClient].
func New(keys string, log *slog.Logger, client *http.Client) *Sender {
	return &Sender{keys: keys, log: log, client: client, devices: make(map[string]*subscription)}
}

// Set sets where a device gets messages, or that it gets none, without an endpoint. It does not block.
func (s *Sender) Set(device []byte, n *wire.Notify) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.devices, string(device))
	if n == nil || n.Endpoint == "" {
		return
	}
	sub, err := parse(n)
	if err == nil && len(s.devices) == maxDevices {
		err = fmt.Errorf("%d devices get messages already", maxDevices)
	}
	if err != nil {
		s.log.Warn("device gets no notifications", "error", err)
		return
	}
	s.devices[string(device)] = sub
}

// Any reports whether there is a device.
func (s *Sender) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.devices) > 0
}

// Send sends a message to all devices, except some and, unless it is the last one, those that got many before. It does not
// block; a message that fails is not sent again.
func (s *Sender) Send(m Message, last bool, except map[string]bool) {
	record, err := json.Marshal(m)
	if err == nil {
		record, err = pad(record)
	}
	if err != nil {
		s.log.Warn("device gets no notifications", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for device, sub := range s.devices {
		if except[device] || sub.busy || !last && !sub.rate.Allow() {
			continue
		}
		sub.busy = true
		s.sending.Go(func() { s.send(device, sub, record) })
	}
}

// Wait waits for the messages that are under way, but not for a disk or a network that hangs.
func (s *Sender) Wait() {
	done := make(chan struct{})
	go func() {
		s.sending.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * sendTime):
	}
}

// send sends a message to a device, if that may still log in. One that may not, or has no subscription any more, is dropped.
func (s *Sender) send(device string, sub *subscription, record []byte) {
	key, err := enrolled.Find(s.keys, sha256.Sum256([]byte(device)), false)
	if err == nil && key.Kind != auth.KindDevice {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = s.post(sub, record)
	}
	if err != nil {
		s.log.Warn("notification not sent", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.busy = false
	if errors.Is(err, fs.ErrNotExist) && s.devices[device] == sub {
		delete(s.devices, device)
	}
}

// post gives a message to the push service. The error is fs.ErrNotExist if that does not know the subscription any more.
func (s *Sender) post(sub *subscription, record []byte) error {
	sealed, err := sub.sealOnce(record)
	if err != nil {
		return err
	}
	proof, err := sub.authorization(time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.endpoint.String(), bytes.NewReader(sealed))
	if err != nil {
		return errors.New("the endpoint is no URL")
	}
	for name, value := range map[string]string{
		"Authorization": proof, "Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream",
		"TTL": keepTime, "Urgency": "high", "User-Agent": "",
	} {
		r.Header.Set(name, value)
	}
	answer, err := s.client.Do(r)
	if failed := new(url.Error); errors.As(err, &failed) {
		return failed.Err // without the URL, which is a secret
	}
	if err != nil {
		return err
	}
	answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone:
		return fs.ErrNotExist
	case answer.StatusCode/100 != 2:
		return fmt.Errorf("the push service answers %d", answer.StatusCode)
	}
	return nil
}

// Text says what an event is that people may have to be told of. It is empty for others.
func Text(e wire.Event) string {
	switch {
	case e.Kind == wire.EventWaits:
		return "waits for input"
	case e.Kind == wire.EventBell:
		return "rings"
	case e.Kind == wire.EventExited && *e.Status != 0:
		return fmt.Sprintf("has ended with status %d", *e.Status)
	case e.Kind == wire.EventExited:
		return "has ended"
	}
	return ""
}
