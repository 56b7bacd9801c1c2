//go:build linux || darwin

package keys

import (
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/quicterm/quicterm/quicterm/auth"
)

// maxWebFile bounds a file with certificates or a key, in bytes.
const maxWebFile = 256 << 10

// A Web is the certificate of the page that a daemon serves, and its key, from two files that another program may replace
// at any time. Any goroutine may use it. The methods may be called on nil.
type Web struct {
	files [2]string // certificate, key
	log   *slog.Logger

	mu       sync.Mutex
	sums     [2][sha256.Size]byte // of what was read last
	chain    [][]byte
	private  crypto.Signer
	reported string // the last error that was logged
}

// NewWeb returns the certificate and the key in two files. If they cannot be read now, that is logged.
func NewWeb(certificate, key string, log *slog.Logger) *Web {
	w := &Web{files: [2]string{certificate, key}, log: log}
	w.Read()
	return w
}

// Read reads the files, and reports whether there is another certificate. If they do not belong together, or cannot be
// read, the certificate stays as it is, and the log says why.
func (w *Web) Read() (changed bool) {
	if w == nil {
		return false
	}
	content, err := readWeb(w.files)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		changed, err = w.storeLocked(content)
	}
	switch {
	case err == nil:
		w.reported = ""
	case err.Error() != w.reported:
		w.reported = err.Error()
		w.log.Error("the page's certificate cannot be read", "error", err)
	}
	return changed
}

func (w *Web) storeLocked(content [2][]byte) (changed bool, err error) {
	sums := [2][sha256.Size]byte{sha256.Sum256(content[0]), sha256.Sum256(content[1])}
	if sums == w.sums {
		return false, nil
	}
	pair, err := parseWeb(w.files, content)
	if err != nil {
		return false, err
	}
	w.sums, w.chain, w.private = sums, pair.Certificate, pair.PrivateKey.(crypto.Signer)
	w.log.Info("the page has a certificate until "+pair.Leaf.NotAfter.Format(time.DateOnly), "file", w.files[0])
	return true, nil
}

// CheckWeb returns until when the certificate in a file is good, with the key in another.
func CheckWeb(certificate, key string) (until time.Time, err error) {
	files := [2]string{certificate, key}
	content, err := readWeb(files)
	if err != nil {
		return until, err
	}
	pair, err := parseWeb(files, content)
	if err != nil {
		return until, err
	}
	return pair.Leaf.NotAfter, nil
}

func readWeb(files [2]string) (content [2][]byte, err error) {
	for i, file := range files {
		if content[i], _, err = auth.ReadFile(file, maxWebFile); err != nil {
			return content, err
		}
	}
	return content, nil
}

func parseWeb(files [2]string, content [2][]byte) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return pair, fmt.Errorf("%s with %s: %w", files[0], files[1], err)
	}
	if _, ok := pair.PrivateKey.(crypto.Signer); !ok {
		return pair, fmt.Errorf("%s: a key of this type does not sign", files[1])
	}
	return pair, nil
}

// Chain returns the certificates, the page's first, or nothing if they could not be read yet.
func (w *Web) Chain() [][]byte {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chain
}

// Name returns the first name in the certificate that is one host's, or nothing.
func (w *Web) Name() string {
	chain := w.Chain()
	if len(chain) == 0 {
		return ""
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return ""
	}
	for _, name := range leaf.DNSNames {
		if !strings.Contains(name, "*") {
			return name
		}
	}
	return ""
}

// Sign signs what the server of TLS 1.3 signs in a handshake, and nothing else.
func (w *Web) Sign(message []byte, hash crypto.Hash) ([]byte, error) {
	w.mu.Lock()
	private := w.private
	w.mu.Unlock()
	if private == nil {
		return nil, errors.New("the page has no certificate yet")
	}
	return auth.SignHandshake(private, message, hash)
}
