//go:build linux || darwin

package privsep

import (
	"errors"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/quicterm/quicterm/quicterm/wire"
)

var (
	channelEncoding = func() cbor.EncMode {
		m, err := cbor.EncOptions{Sort: cbor.SortCanonical, Time: cbor.TimeUnixMicro}.EncMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
	channelDecoding = func() cbor.DecMode {
		m, err := cbor.DecOptions{
			UTF8: cbor.UTF8DecodeInvalid, DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden,
			TagsMd: cbor.TagsForbidden, MaxNestedLevels: 16, MaxArrayElements: 1 << 15, MaxMapPairs: 1024,
		}.DecMode()
		if err != nil {
			panic(err)
		}
		return m
	}()
)

// decode decodes what the other half says. Texts that people see become [wire.Printable] here, so that nothing
// behind it has to look at them.
func decode(payload []byte, v any) error {
	err := channelDecoding.Unmarshal(payload, v)
	if text, ok := v.(interface{ makePrintable() }); err == nil && ok {
		text.makePrintable()
	}
	return err
}

// maxShownText bounds a text of the other half that people see, in bytes: an error is a few lines on a terminal.
const maxShownText = 1024

func (f *failure) makePrintable() {
	f.Text = wire.Printable(f.Text, maxShownText)
	if f.Refusal != nil {
		f.Refusal.Text = wire.Printable(f.Refusal.Text, maxShownText)
	}
}

func (r *reply) makePrintable() {
	if r.Failure != nil {
		r.Failure.makePrintable()
	}
}

func (c *Clients) makePrintable() {
	for _, session := range c.Sessions {
		for i := range session.Clients {
			one := &session.Clients[i]
			one.Client = wire.Printable(one.Client, wire.MaxClient)
			for _, text := range []*string{&one.Proof, &one.Certificate, &one.CA, &one.Reported} {
				*text = wire.Printable(*text, wire.MaxSummary)
			}
			one.Role, one.Kind = wire.Printable(one.Role, wire.MaxSummary), wire.Printable(one.Kind, wire.MaxSummary)
		}
	}
}

// UnmarshalCBOR implements cbor.Unmarshaler. It drops the zones of addresses.
func (p *Path) UnmarshalCBOR(b []byte) error {
	type plain Path
	err := channelDecoding.Unmarshal(b, (*plain)(p))
	p.Client, p.Server = WithoutZone(p.Client), WithoutZone(p.Server)
	return err
}

// A reply answers a call.
type reply struct {
	Failure *failure        `cbor:"1,keyasint,omitempty"`
	Body    cbor.RawMessage `cbor:"2,keyasint,omitempty"`
}

func replyOf(answer any, err error) *reply {
	var r reply
	if err == nil && answer != nil {
		r.Body, err = channelEncoding.Marshal(answer)
	}
	if err != nil {
		return &reply{Failure: failureOf(err)}
	}
	return &r
}

// read decodes the answer, unless that is nil, or returns the error of the call.
func (r *reply) read(answer any) error {
	if r.Failure != nil {
		return r.Failure.err()
	}
	if answer == nil {
		return nil
	}
	if err := decode(r.Body, answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// A failure is the error of a call.
type failure struct {
	Text      string      `cbor:"1,keyasint"`
	Withdrawn bool        `cbor:"2,keyasint,omitempty"`
	Draining  bool        `cbor:"3,keyasint,omitempty"`
	Refusal   *wire.Error `cbor:"4,keyasint,omitempty"`
}

// failureOf returns what the other end is told of an error.
func failureOf(err error) *failure {
	f := &failure{Text: err.Error(), Draining: errors.Is(err, ErrDraining)}
	errors.As(err, &f.Refusal)
	if withdrawn, ok := errors.AsType[*Withdrawn](err); ok {
		f.Withdrawn, f.Text = true, withdrawn.Reason
	}
	return f
}

// err is the inverse of failureOf.
func (f *failure) err() error {
	switch {
	case f.Draining:
		return ErrDraining
	case f.Refusal != nil:
		return f.Refusal
	case f.Withdrawn:
		return &Withdrawn{Reason: f.Text}
	}
	return errors.New(f.Text)
}
