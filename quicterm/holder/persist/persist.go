//go:build linux || darwin

// Package persist keeps on disk what is left of a session when its process is gone: its last
// screen, facts about it, and in a log the output after that screen.
//
// A store is a directory of an account. It has a directory for each session, with a lock that the
// session's process holds, and numbered files:
//
//	<id>/lock
//	<id>/7      the file before, if 8 continues it
//	<id>/8      the last one
//
// A file begins with a screen and may continue with output. It is made under another name and
// renamed when the screen is whole: a crash at any moment leaves the one before. The frames of package
// buffer find damage. With a key, each payload is encrypted and bound to its session, file and number;
// that an older state of the whole directory was put back is not found.
//
// The bytes of a file are bounded before they are read, whatever the file has.
package persist

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/fxamacker/cbor/v2"

	"github.com/quicterm/quicterm/buffer"
)

// Errors of reading a file.
var (
	ErrOtherKey     = errors.New("it was encrypted with another key than that of persist_key")
	ErrNoKey        = errors.New("it is encrypted, and persist_key is not set")
	ErrNotEncrypted = errors.New("it is not encrypted, and persist_key is set")
	ErrDamaged      = errors.New("it is damaged")
)

// Facts are what is known of a session. Any field may have any bytes: programs choose them.
type Facts struct {
	Name    string   `cbor:"1,keyasint"`
	Scope   string   `cbor:"2,keyasint"`
	Command string   `cbor:"3,keyasint"` // for people
	Argv    []string `cbor:"4,keyasint"`
	Dir     string   `cbor:"5,keyasint"` // working directory of the program in the foreground
	Cols    uint16   `cbor:"6,keyasint"`
	Rows    uint16   `cbor:"7,keyasint"`
	Created int64    `cbor:"8,keyasint"` // Unix seconds
	Seen    int64    `cbor:"9,keyasint"` // when these facts were true, Unix seconds
	Boot    []byte   `cbor:"10,keyasint"`
	Exited  bool     `cbor:"11,keyasint"` // the program has ended, and no client has seen that
	Status  uint8    `cbor:"12,keyasint"`
	Reason  string   `cbor:"13,keyasint"` // why the program was ended
}

// An Event is a part of the output after the screen: bytes, or a size if those are nil.
type Event struct {
	Output     []byte
	Cols, Rows uint16
}

// Contents are what a file has.
type Contents struct {
	Facts      Facts
	Cols, Rows uint16 // of the screen: the size may have changed since
	Screen     []byte // output that brings a terminal of that size to the screen
	Events     []Event
	closed     bool // the next file continues with what follows the last event
}

// The types of frames in a file. The header comes first, then facts, the screen and its end.
const (
	typeHeader buffer.Type = 1 + iota
	typeFacts
	typeScreen
	typeScreenEnd
	typeOutput
	typeResize
	typeClosed
)

const (
	version = 1

	saltSize  = 32
	checkSize = 8

	// maxPlain is the largest payload before it is encrypted.
	maxPlain = buffer.MaxPayload - 16
)

// sealing returns the cipher of a file, and bytes by which another key is told from damage. place names
// the session and the file: a key is used for one file only, so that the number of a frame is a nonce.
func sealing(key, salt []byte, place string) (aead cipher.AEAD, check []byte, err error) {
	secret, err := hkdf.Extract(sha256.New, key, salt)
	if err != nil {
		return nil, nil, err
	}
	check, err = hkdf.Expand(sha256.New, secret, "quicterm record: check", checkSize)
	if err != nil {
		return nil, nil, err
	}
	secret, err = hkdf.Expand(sha256.New, secret, "quicterm record: "+place, 32)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, nil, err
	}
	aead, err = cipher.NewGCM(block)
	return aead, check, err
}

func nonce(seq uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 4, 12), seq) }

// An encoder makes the bytes of a file.
type encoder struct {
	aead cipher.AEAD // nil without a key
	seq  uint64
	b    []byte // not written yet
}

func newEncoder(key []byte, place string) (*encoder, error) {
	e := new(encoder)
	header := []byte{version}
	if key != nil {
		salt := make([]byte, saltSize)
		rand.Read(salt)
		aead, check, err := sealing(key, salt, place)
		if err != nil {
			return nil, err
		}
		header = append(append(header, salt...), check...)
		e.add(typeHeader, header)
		e.aead = aead
		return e, nil
	}
	e.add(typeHeader, header)
	return e, nil
}

func (e *encoder) add(t buffer.Type, payload []byte) {
	e.seq++
	if e.aead != nil {
		payload = e.aead.Seal(nil, nonce(e.seq), payload, []byte{byte(t)})
	}
	e.b = buffer.AppendFrame(e.b, buffer.Frame{Seq: e.seq, Type: t, Payload: payload})
}

func (e *encoder) addAll(t buffer.Type, b []byte) {
	for len(b) > 0 {
		n := min(len(b), maxPlain)
		e.add(t, b[:n])
		b = b[n:]
	}
}

// maxFacts bounds the size of facts: a command line may be longer, and is then not kept.
const maxFacts = maxPlain / 2

func (e *encoder) facts(f *Facts) error {
	b, err := cbor.Marshal(f)
	if err == nil && len(b) > maxFacts {
		short := *f
		short.Argv, short.Dir = nil, ""
		if b, err = cbor.Marshal(&short); err == nil && len(b) > maxFacts {
			err = fmt.Errorf("facts of %d bytes", len(b))
		}
	}
	if err == nil {
		e.add(typeFacts, b)
	}
	return err
}

func (e *encoder) resize(cols, rows uint16) {
	e.add(typeResize, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, cols), rows))
}

// decMode bounds what facts may have.
var decMode = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxNestedLevels: 4, MaxArrayElements: 16 << 10, MaxMapPairs: 64,
		IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden, UTF8: cbor.UTF8DecodeInvalid,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return m
}()

// A decoder reads the frames of a file.
type decoder struct {
	frames *buffer.Reader
	aead   cipher.AEAD // nil without a key
	seq    uint64      // of the next frame
}

// newDecoder reads the header of a file of at most limit bytes.
func newDecoder(r io.Reader, key []byte, place string, limit int64) (*decoder, error) {
	d := &decoder{frames: buffer.NewReader(io.LimitReader(r, limit)), seq: 2}
	first, err := d.frames.Next()
	if err != nil || first.Seq != 1 || first.Type != typeHeader || len(first.Payload) == 0 || first.Payload[0] != version {
		return nil, ErrDamaged
	}
	switch header := first.Payload[1:]; {
	case len(header) == 0 && key != nil:
		return nil, ErrNotEncrypted
	case len(header) == 0:
	case len(header) != saltSize+checkSize:
		return nil, ErrDamaged
	case key == nil:
		return nil, ErrNoKey
	default:
		var check []byte
		if d.aead, check, err = sealing(key, header[:saltSize], place); err != nil {
			return nil, err
		}
		if subtle.ConstantTimeCompare(check, header[saltSize:]) == 0 {
			return nil, ErrOtherKey
		}
	}
	return d, nil
}

// next reads a frame.
func (d *decoder) next() (f buffer.Frame, err error) {
	if f, err = d.frames.Next(); err == nil && f.Seq != d.seq {
		err = ErrDamaged
	}
	if err == nil && d.aead != nil {
		f.Payload, err = d.aead.Open(nil, nonce(d.seq), f.Payload, []byte{byte(f.Type)})
	}
	d.seq++
	return f, err
}

// decode reads a file of at most limit bytes. What follows the screen is read up to the first damage:
// a crash may have cut it. Without a whole screen there is an error.
func decode(r io.Reader, key []byte, place string, limit int64) (*Contents, error) {
	d, err := newDecoder(r, key, place, limit)
	if err != nil {
		return nil, err
	}
	c, whole := new(Contents), false
	for {
		f, err := d.next()
		if err == nil {
			err = c.take(f, &whole)
		}
		if err != nil && !whole {
			return nil, ErrDamaged
		}
		if err != nil {
			return c, nil
		}
	}
}

// decodeHead reads the first facts of a file.
func decodeHead(r io.Reader, key []byte, place string) (*Facts, error) {
	d, err := newDecoder(r, key, place, 4*buffer.MaxPayload)
	if err != nil {
		return nil, err
	}
	var c Contents
	f, err := d.next()
	if err == nil && f.Type == typeFacts {
		err = c.take(f, new(bool))
	}
	if err != nil || f.Type != typeFacts {
		return nil, ErrDamaged
	}
	return &c.Facts, nil
}

// take adds a frame.
func (c *Contents) take(f buffer.Frame, whole *bool) error {
	switch f.Type {
	case typeFacts:
		var facts Facts
		if err := decMode.Unmarshal(f.Payload, &facts); err != nil {
			return err
		}
		c.Facts = facts
	case typeScreen:
		if !*whole {
			c.Screen = append(c.Screen, f.Payload...)
		}
	case typeScreenEnd:
		*whole, c.Cols, c.Rows = true, c.Facts.Cols, c.Facts.Rows
	case typeOutput:
		c.Events = append(c.Events, Event{Output: f.Payload})
	case typeResize:
		if len(f.Payload) == 4 {
			c.Events = append(c.Events, Event{
				Cols: binary.BigEndian.Uint16(f.Payload), Rows: binary.BigEndian.Uint16(f.Payload[2:]),
			})
		}
	case typeClosed:
		c.closed = true
	}
	return nil
}
