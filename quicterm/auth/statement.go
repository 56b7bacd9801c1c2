package auth

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// statementVersion begins what a user signs: other forms of it begin otherwise.
	statementVersion = "v2"

	// exporterLabel has the prefix of labels that are not registered (RFC 5705, 4).
	exporterLabel = "EXPERIMENTAL-quicterm-auth"

	// ExporterSize is the size of the keying material in a Statement, in bytes.
	ExporterSize = 32
)

// The first byte of a Statement's Time says whose it is. A server cannot make a client sign a time to
// come as that of the client's own clock.
const byClient, byServer = 0, 1

// A HostID is the hash of a host key.
type HostID [sha256.Size]byte

// HostIDOf returns the hash of a host key, or of the key of a certificate.
func HostIDOf(key ssh.PublicKey) HostID { return sha256.Sum256(PlainKey(key).Marshal()) }

// A Statement is what a user signs to log in: where, to which account, when, and on which
// connection. So a signature is worth nothing anywhere else.
type Statement struct {
	Host     HostID
	Account  string
	Time     []byte // by ClientTime or ServerTime
	Exporter []byte // see Exporter
}

// Bytes returns the signed bytes (SPEC.md, 4.2). No two statements have the same.
func (s *Statement) Bytes() []byte {
	b := append([]byte(statementVersion), s.Host[:]...)
	for _, field := range [][]byte{[]byte(s.Account), s.Time, s.Exporter} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	return b
}

// An Encrypted is a connection over TLS.
type Encrypted interface{ TLS() tls.ConnectionState }

// NewStatement returns the statement of a client on a connection.
func NewStatement(conn tls.ConnectionState, account string, time []byte) (*Statement, error) {
	if len(conn.PeerCertificates) == 0 {
		return nil, errors.New("a signature needs a server with a host key")
	}
	key, err := presentedKey(conn.PeerCertificates[0])
	if err != nil {
		return nil, err
	}
	exporter, err := Exporter(conn)
	return &Statement{HostIDOf(key), account, time, exporter}, err
}

// Exporter returns keying material that only the two ends of a connection know (RFC 8446, 7.5). It fails
// before the handshake is complete.
func Exporter(conn tls.ConnectionState) ([]byte, error) {
	return conn.ExportKeyingMaterial(exporterLabel, nil, ExporterSize)
}

// ClientTime returns the Time of a Statement by the user's own clock.
func ClientTime(now time.Time) []byte {
	return binary.BigEndian.AppendUint64([]byte{byClient}, uint64(now.Unix()))
}

// ServerTime returns the Time of a Statement by what the server has said in an Offer.
func ServerTime(offered []byte) []byte { return append([]byte{byServer}, offered...) }

// ParseTime returns what is in a Statement's Time: the client's, or nothing and what the server has said.
func ParseTime(t []byte) (clock time.Time, offered []byte, err error) {
	switch {
	case len(t) == 9 && t[0] == byClient:
		return time.Unix(int64(binary.BigEndian.Uint64(t[1:])), 0), nil, nil
	case len(t) > 0 && t[0] == byServer:
		return time.Time{}, t[1:], nil
	}
	return time.Time{}, nil, errors.New("a signature without a time")
}
