package hub

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// version begins messages that have another form in a later version of the protocol.
const version = 1

var errMessage = errors.New("hub: a message of another form or version")

// A Call opens a stream. The host answers by a Credit on the stream, or by a Reset.
type Call struct {
	Stream StreamID
	Window uint32 // bytes that the host may send
}

// Encode returns the call as a message.
func (c *Call) Encode() []byte {
	return binary.BigEndian.AppendUint32(append([]byte{version}, c.Stream[:]...), c.Window)
}

// ParseCall reads a call. A longer message is an error.
func ParseCall(message []byte) (c Call, err error) {
	if len(message) != 1+len(c.Stream)+4 || message[0] != version {
		return c, errMessage
	}
	copy(c.Stream[:], message[1:])
	c.Window = binary.BigEndian.Uint32(message[1+len(c.Stream):])
	return c, nil
}

// A ListRequest asks for the hosts behind a name, in the order of names.
type ListRequest struct {
	ID    [16]byte // of the answer
	After string   // or empty for the first
}

// Encode returns the request as a message.
func (r *ListRequest) Encode() []byte {
	return append(append([]byte{version}, r.ID[:]...), r.After...)
}

// ParseListRequest reads a request.
func ParseListRequest(message []byte) (r ListRequest, err error) {
	n := 1 + len(r.ID)
	if len(message) < n || len(message) > n+MaxName || message[0] != version {
		return r, errMessage
	}
	copy(r.ID[:], message[1:])
	if r.After = string(message[n:]); r.After != "" {
		err = CheckName(r.After)
	}
	return r, err
}

// A Page is a part of the list of hosts.
type Page struct {
	Entries []Entry `json:"entries"`
	More    bool    `json:"more,omitempty"` // there are hosts behind the last one
}

// EncodePage returns a message with the first of the entries, as many as fit. They are sorted by name.
func EncodePage(entries []Entry) ([]byte, error) {
	page := Page{More: len(entries) > 0}
	size := 64
	for i, e := range entries {
		b, err := json.Marshal(&e)
		if err != nil {
			return nil, err
		}
		if size += len(b) + 1; size > MaxMessage {
			break
		}
		page.Entries = entries[:i+1]
		page.More = i+1 < len(entries)
	}
	return json.Marshal(&page)
}

// ParsePage reads a page and checks its entries. They must be sorted, behind a name, so that pages have an end.
func ParsePage(message []byte, after string) (*Page, error) {
	if len(message) > MaxMessage {
		return nil, errMessage
	}
	p := new(Page)
	if err := json.Unmarshal(message, p); err != nil {
		return nil, errMessage
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		if err := e.Check(); err != nil {
			return nil, err
		}
		if e.Name <= after {
			return nil, errors.New("hub: a list of hosts that is not sorted")
		}
		after = e.Name
	}
	if p.More && len(p.Entries) == 0 {
		return nil, errMessage
	}
	return p, nil
}

const (
	// MaxCredential bounds a Credential as text in bytes: an RSA key of 8192 bits and its signature have 2 KiB and a bit.
	MaxCredential = 4 << 10

	// MaxSkew bounds how far the clocks of a hub and of a login may differ.
	MaxSkew = 2 * time.Minute
)

// A Credential is what a login sends beside the proof of its nkey: the token of NATS' CONNECT.
type Credential struct {
	Key       []byte // the public key, in ssh's wire form
	Time      time.Time
	Signature []byte // of Statement, in ssh's wire form
}

// Encode returns the credential as text.
func (c *Credential) Encode() (string, error) {
	b := binary.BigEndian.AppendUint64([]byte{version}, uint64(c.Time.Unix()))
	b = appendString(b, string(c.Key))
	b = append(b, c.Signature...)
	if base64.RawURLEncoding.EncodedLen(len(b)) > MaxCredential {
		return "", fmt.Errorf("a key and signature of %d bytes are too long for a hub", len(b))
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

// ParseCredential reads a credential, and checks nothing of it.
func ParseCredential(text string) (c Credential, err error) {
	if len(text) > MaxCredential {
		return c, errMessage
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 1+8+4 || b[0] != version {
		return c, errMessage
	}
	seconds, n := binary.BigEndian.Uint64(b[1:]), uint64(binary.BigEndian.Uint32(b[9:]))
	if b = b[13:]; n > uint64(len(b)) || seconds > 1<<40 {
		return c, errMessage
	}
	return Credential{Key: b[:n], Time: time.Unix(int64(seconds), 0), Signature: b[n:]}, nil
}
