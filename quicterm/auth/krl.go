package auth

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"

	"golang.org/x/crypto/ssh"
)

// The key revocation list of ssh-keygen (PROTOCOL.krl in OpenSSH).
const (
	krlMagic = "SSHKRL\n\x00"

	krlCertificates = 1
	krlKeys         = 2
	krlSHA1         = 3
	krlSignature    = 4
	krlSHA256       = 5
	krlExtension    = 255

	// The parts of a section of certificates.
	krlSerials              = 0x20
	krlSerialRange          = 0x21
	krlSerialBits           = 0x22
	krlKeyIDs               = 0x23
	krlCertificateExtension = 0x39
)

var errKRL = errors.New("malformed key revocation list")

// parseKRL reads a key revocation list behind its magic.
func parseKRL(b []byte, into *RevokedKeys) error {
	const fixed = 4 + 8 + 8 + 8 // format, version, date, flags
	if len(b) < fixed || binary.BigEndian.Uint32(b) != 1 {
		return errKRL
	}
	r := krlReader{rest: b[fixed:]}
	r.text() // reserved
	r.text() // comment
	for len(r.rest) > 0 {
		kind := r.byte()
		section := krlReader{rest: r.text()}
		switch kind {
		case krlKeys:
			for len(section.rest) > 0 {
				into.add(section.text())
			}
		case krlSHA1:
			for len(section.rest) > 0 {
				into.hashes[string(section.hash(sha1.Size))] = struct{}{}
			}
		case krlSHA256:
			for len(section.rest) > 0 {
				into.hashes[string(section.hash(sha256.Size))] = struct{}{}
			}
		case krlCertificates:
			into.certificates = append(into.certificates, section.certificates())
		case krlSignature:
			r.text() // the section is the key that made it
		case krlExtension:
			section.extension()
		default:
			return fmt.Errorf("the key revocation list has an unknown section %d", kind)
		}
		r.join(section)
	}
	return r.err
}

// A revokedCertificates is what revokes certificates of one authority, or of all.
type revokedCertificates struct {
	authority []byte // its key; empty for all
	serials   []serials
	ids       map[string]struct{} // of the certificates
}

// serials are serial numbers from first to last, those of the bits that are set in only if that is not nil.
type serials struct {
	first, last uint64
	only        *big.Int
}

func (c *revokedCertificates) has(cert *ssh.Certificate) bool {
	if len(c.authority) > 0 && !bytes.Equal(c.authority, cert.SignatureKey.Marshal()) {
		return false
	}
	if _, ok := c.ids[cert.KeyId]; ok {
		return true
	}
	if cert.Serial == 0 { // it has none
		return false
	}
	for _, s := range c.serials {
		if cert.Serial >= s.first && cert.Serial <= s.last && (s.only == nil || s.only.Bit(int(cert.Serial-s.first)) == 1) {
			return true
		}
	}
	return false
}

// certificates reads the rest of a section of certificates.
func (r *krlReader) certificates() revokedCertificates {
	c := revokedCertificates{authority: r.text(), ids: make(map[string]struct{})}
	r.text() // reserved
	for len(r.rest) > 0 {
		kind := r.byte()
		part := krlReader{rest: r.text()}
		switch kind {
		case krlSerials:
			for len(part.rest) > 0 {
				serial := part.number()
				c.serials = append(c.serials, serials{first: serial, last: serial})
			}
		case krlSerialRange:
			c.serials = append(c.serials, serials{first: part.number(), last: part.number()})
		case krlSerialBits:
			s := serials{first: part.number(), only: new(big.Int).SetBytes(part.text())}
			s.last = s.first + uint64(s.only.BitLen())
			if s.last < s.first {
				s.last = math.MaxUint64
			}
			c.serials = append(c.serials, s)
		case krlKeyIDs:
			for len(part.rest) > 0 {
				c.ids[string(part.text())] = struct{}{}
			}
		case krlCertificateExtension:
			part.extension()
		default:
			r.fail(fmt.Errorf("the key revocation list has an unknown part %d of certificates", kind))
		}
		r.join(part)
	}
	return c
}

// extension reads the name of an extension, none of which is known, and whether it may be skipped.
func (r *krlReader) extension() {
	r.text()
	if r.byte() != 0 {
		r.fail(errors.New("the key revocation list has an unknown critical extension"))
	}
}

// A krlReader reads the parts of a key revocation list. After an error it returns nothing more.
type krlReader struct {
	rest []byte
	err  error
}

func (r *krlReader) fail(err error) {
	if r.err == nil {
		r.err, r.rest = err, nil
	}
}

// join takes over the error of the reader of a part.
func (r *krlReader) join(part krlReader) {
	if part.err != nil {
		r.fail(part.err)
	}
}

func (r *krlReader) next(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail(errKRL)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *krlReader) byte() byte {
	if b := r.next(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (r *krlReader) number() uint64 {
	if b := r.next(8); len(b) == 8 {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// text returns the next bytes with a length before them.
func (r *krlReader) text() []byte {
	length := r.next(4)
	if len(length) < 4 {
		return nil
	}
	return r.next(uint64(binary.BigEndian.Uint32(length)))
}

// hash returns the next bytes with a length before them, which must be as given.
func (r *krlReader) hash(size int) []byte {
	b := r.text()
	if len(b) != size {
		r.fail(errKRL)
	}
	return b
}
