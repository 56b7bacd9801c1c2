//go:build linux || darwin

package sshd

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// maxRevoked is the size of the largest RevokedKeys file that is read, in bytes: half a
// million keys.
const maxRevoked = 16 << 20

// A revokedFile is the RevokedKeys file that was read last. It is read again when it changes.
type revokedFile struct {
	mu   sync.Mutex
	name string
	info os.FileInfo
	keys revokedKeys
}

// has reports whether a file revokes a key. sshd refuses all keys if it cannot read the file,
// and so must the caller.
func (r *revokedFile) has(name string, key ssh.PublicKey) (bool, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name != name || !os.SameFile(r.info, info) || !r.info.ModTime().Equal(info.ModTime()) || r.info.Size() != info.Size() {
		content, err := io.ReadAll(io.LimitReader(f, maxRevoked+1))
		if err != nil {
			return false, err
		}
		if len(content) > maxRevoked {
			return false, fmt.Errorf("%s: larger than %d bytes", name, maxRevoked)
		}
		keys, err := parseRevoked(content)
		if err != nil {
			return false, fmt.Errorf("%s: %w", name, err)
		}
		r.name, r.info, r.keys = name, info, keys
	}
	return r.keys.has(key), nil
}

// revokedKeys are the hashes of revoked keys, by SHA-1 or SHA-256.
type revokedKeys map[string]struct{}

func (r revokedKeys) add(blob []byte) {
	sum := sha256.Sum256(blob)
	r[string(sum[:])] = struct{}{}
}

func (r revokedKeys) has(key ssh.PublicKey) bool {
	blob := key.Marshal()
	long, short := sha256.Sum256(blob), sha1.Sum(blob)
	_, byLong := r[string(long[:])]
	_, byShort := r[string(short[:])]
	return byLong || byShort
}

// parseRevoked reads a RevokedKeys file: a list of public keys, one a line, or what
// ssh-keygen -k makes. It leaves out what revokes only certificates.
func parseRevoked(content []byte) (revokedKeys, error) {
	keys := make(revokedKeys)
	if rest, ok := bytes.CutPrefix(content, []byte(krlMagic)); ok {
		return keys, parseKRL(rest, keys)
	}
	for line := range bytes.Lines(content) {
		fields := bytes.Fields(line)
		if len(fields) == 0 || fields[0][0] == '#' {
			continue
		}
		if len(fields) < 2 {
			return nil, errors.New("a line is not a public key")
		}
		blob, err := base64.StdEncoding.DecodeString(string(fields[1]))
		if err != nil {
			return nil, fmt.Errorf("a line is not a public key: %w", err)
		}
		key, err := ssh.ParsePublicKey(blob)
		if err != nil || key.Type() != string(fields[0]) {
			return nil, errors.Join(errors.New("a line is not a public key"), err)
		}
		if certificate, ok := key.(*ssh.Certificate); ok {
			key = certificate.Key
		}
		keys.add(key.Marshal())
	}
	return keys, nil
}

// The key revocation list of ssh-keygen (PROTOCOL.krl in OpenSSH).
const (
	krlMagic = "SSHKRL\n\x00"

	krlCertificates = 1
	krlKeys         = 2
	krlSHA1         = 3
	krlSignature    = 4
	krlSHA256       = 5
	krlExtension    = 255
)

var errKRL = errors.New("malformed key revocation list")

// parseKRL reads a key revocation list behind its magic.
func parseKRL(b []byte, into revokedKeys) error {
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
				into[string(section.hash(sha1.Size))] = struct{}{}
			}
		case krlSHA256:
			for len(section.rest) > 0 {
				into[string(section.hash(sha256.Size))] = struct{}{}
			}
		case krlCertificates:
		case krlSignature:
			r.text() // the section is the key that made it
		case krlExtension:
			section.text() // its name
			if critical := section.byte(); critical != 0 {
				return errors.New("the key revocation list has an unknown critical extension")
			}
		default:
			return fmt.Errorf("the key revocation list has an unknown section %d", kind)
		}
		r.failed = r.failed || section.failed
	}
	if r.failed {
		return errKRL
	}
	return nil
}

// A krlReader reads the parts of a key revocation list. When one is not there, it has failed,
// and returns nothing more.
type krlReader struct {
	rest   []byte
	failed bool
}

// next returns the next n bytes.
func (r *krlReader) next(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
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
	r.failed = r.failed || len(b) != size
	return b
}
