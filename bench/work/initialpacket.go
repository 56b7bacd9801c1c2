//go:build linux

package work

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Initial packets made by hand (RFC 9000, 17.2.2; RFC 9001, 5), because a flood of real clients would
// take more CPU time than it costs the daemon. All of them have the same ClientHello, a source
// connection id of length 0, and take a whole datagram.

const (
	initialSize = 1200 // the least for a datagram with an Initial
	idSize      = 8    // of destination connection ids
	version1    = 1
	tagSize     = 16

	// The first byte of long headers: the form, the fixed bit and the type. That of an Initial says that
	// its packet number has 4 bytes.
	firstInitial, firstZeroRTT, firstHandshake, firstRetry = 0xc3, 0xd3, 0xe3, 0xf0
)

// initialSalt is that of version 1 (RFC 9001, 5.2).
var initialSalt = []byte{
	0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
	0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a,
}

// clientHello returns a ClientHello of a client of the daemon.
func clientHello() ([]byte, error) {
	conn := tls.QUICClient(&tls.QUICConfig{TLSConfig: &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{wire.ALPN},
		ServerName: auth.ServerName(nil), CurvePreferences: []tls.CurveID{tls.X25519},
	}})
	defer conn.Close()
	conn.SetTransportParameters([]byte{0x0f, 0}) // initial_source_connection_id, of length 0
	if err := conn.Start(context.Background()); err != nil {
		return nil, err
	}
	for {
		switch event := conn.NextEvent(); event.Kind {
		case tls.QUICWriteData:
			return slices.Clone(event.Data), nil
		case tls.QUICNoEvent:
			return nil, errors.New("TLS makes no ClientHello")
		}
	}
}

// longHeader returns the header of a long packet up to the token.
func longHeader(first byte, version uint32, id []byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{first}, version)
	b = append(append(b, byte(len(id))), id...)
	return append(b, 0) // the length of the source connection id
}

// initial returns a datagram with an Initial that has a part of TLS's stream from its beginning on.
func initial(id, token, stream []byte) []byte {
	b := appendLength(longHeader(firstInitial, version1, id), len(token))
	b = append(b, token...)
	number := len(b) + 2 // where the packet number is
	b = appendLength(b, initialSize-number)
	b = binary.BigEndian.AppendUint32(b, 0)
	start := len(b)
	b = append(appendLength(append(b, 0x06, 0), len(stream)), stream...) // a CRYPTO frame, from 0
	b = append(b, make([]byte, initialSize-tagSize-len(b))...)           // PADDING frames

	key, iv, hp := initialKeys(id)
	block, _ := aes.NewCipher(key)
	aead, _ := cipher.NewGCM(block)
	b = aead.Seal(b[:start], iv, b[start:], b[:start])
	mask := make([]byte, aes.BlockSize)
	block, _ = aes.NewCipher(hp)
	block.Encrypt(mask, b[start:start+aes.BlockSize])
	b[0] ^= mask[0] & 0x0f
	for i := range 4 {
		b[number+i] ^= mask[1+i]
	}
	return b
}

// appendLength appends a length in 2 bytes (RFC 9000, 16).
func appendLength(b []byte, n int) []byte { return binary.BigEndian.AppendUint16(b, 0x4000|uint16(n)) }

// initialKeys returns the client's keys for a destination connection id.
func initialKeys(id []byte) (key, iv, hp []byte) {
	secret, _ := hkdf.Extract(sha256.New, id, initialSalt)
	secret = expand(secret, "client in", sha256.Size)
	return expand(secret, "quic key", 16), expand(secret, "quic iv", 12), expand(secret, "quic hp", 16)
}

// expand is HKDF-Expand-Label with an empty context (RFC 8446, 7.1).
func expand(secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	info := append(binary.BigEndian.AppendUint16(nil, uint16(n)), byte(len(label)))
	info = append(append(info, label...), 0)
	key, err := hkdf.Expand(sha256.New, secret, string(info), n)
	if err != nil {
		panic(err) // the lengths above are possible
	}
	return key
}

// retried returns what the next Initial must have after a Retry: the server's connection id and
// token. It is false for other packets.
func retried(b []byte) (id, token []byte, ok bool) {
	const ids = 5 // where the lengths and ids are
	if len(b) < ids+2+tagSize || b[0]&0xf0 != firstRetry || b[ids] != 0 {
		return nil, nil, false
	}
	end := ids + 2 + int(b[ids+1])
	if end+tagSize > len(b) {
		return nil, nil, false
	}
	return b[ids+2 : end], b[end : len(b)-tagSize], true
}
