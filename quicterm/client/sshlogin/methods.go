package sshlogin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The methods by which users prove who they are (RFC 4252, RFC 4256).
const (
	publicKey           = "publickey"
	keyboardInteractive = "keyboard-interactive"
	password            = "password"
)

// usualMethods are in the order of ssh.
var usualMethods = []string{publicKey, keyboardInteractive, password}

// usualPrompts is how often ssh asks for a password.
const usualPrompts = 3

// A DeniedError is the error of a server that does not accept what the user has.
type DeniedError struct {
	User    string
	Methods string // that the server wants
	Failed  error  // why a key that it accepts could not be used, or nil
}

func (e *DeniedError) Error() string {
	text := fmt.Sprintf("permission denied for %s (%s)", e.User, e.Methods)
	if e.Failed != nil {
		text += ": " + e.Failed.Error()
	}
	return text
}

func (e *DeniedError) Unwrap() error { return e.Failed }

// methods chooses one method after the other until the server lets the user in.
type methods struct {
	login  *Login
	server server

	keys   int   // how many were offered
	failed error // of the first key that could not be used
	denied error // set when nothing is left to try
}

// next returns the method to try next, or nil.
func (m *methods) next(state *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	if m.server.err != nil {
		return nil, m.server.err
	}
	for _, method := range m.order() {
		if !slices.Contains(state.AllowedMethods, method) {
			continue
		}
		switch method {
		case publicKey:
			if key := m.nextKey(); key != nil {
				return ssh.PublicKeys(key), nil
			}
		case keyboardInteractive:
			if m.mayAsk(state, method) {
				return ssh.KeyboardInteractive(m.server.challenge), nil
			}
		case password:
			if m.mayAsk(state, method) {
				return ssh.PasswordCallback(func() (string, error) { return m.server.ask("password: ", false) }), nil
			}
		}
	}
	wanted := wire.Printable(strings.Join(state.AllowedMethods, ", "), maxText)
	m.denied = &DeniedError{m.login.User, wanted, m.failed}
	return nil, nil // so that the error of a lost connection is returned
}

// outcome returns the error of a login that has failed with err: with that of a connection that was
// lost, the server has not denied anything.
func (m *methods) outcome(err error) error {
	if m.denied == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError)) {
		return err
	}
	return m.denied
}

func (m *methods) order() []string {
	if m.login.Methods == nil {
		return usualMethods
	}
	return m.login.Methods
}

// mayAsk reports whether the user may be asked for a password once more.
func (m *methods) mayAsk(state *ssh.ClientAuthContext, method string) bool {
	most, tried := m.login.Prompts, 0
	if most == 0 {
		most = usualPrompts
	}
	for _, t := range slices.Concat(state.TriedMethods, state.PartialSuccessMethods) {
		if t == method {
			tried++
		}
	}
	return m.login.Asker != nil && tried < most
}

// nextKey returns the next key to offer, or nil.
func (m *methods) nextKey() ssh.Signer {
	for m.keys < len(m.login.Keys) {
		key := m.login.Keys[m.keys]
		m.keys++
		s := &signer{m, key, signatures(key.Public, m.login.Algorithms.UserKeys)}
		if len(s.algorithms) > 0 && (key.Silent() || m.login.Asker != nil) {
			return s
		}
	}
	return nil
}

// A signer signs with a user's key when the server has accepted the public key. Only then is a
// passphrase or a touch asked for, on the user's time.
type signer struct {
	methods    *methods
	key        *auth.UserKey
	algorithms []string
}

func (s *signer) PublicKey() ssh.PublicKey { return s.key.Public }

func (s *signer) Algorithms() []string { return s.algorithms }

func (s *signer) Sign(rand io.Reader, data []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(rand, data, s.algorithms[0])
}

func (s *signer) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	defer s.methods.server.watch.pause()()
	signature, err := s.sign(rand, data, algorithm)
	if err != nil && s.methods.failed == nil {
		s.methods.failed = err
	}
	return signature, err
}

func (s *signer) sign(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	key, err := s.key.Signer()
	if err != nil {
		return nil, err
	}
	if chosen, ok := key.(ssh.AlgorithmSigner); ok {
		return chosen.SignWithAlgorithm(rand, data, algorithm)
	}
	return key.Sign(rand, data)
}

// signatures returns the algorithms by which a key, or the key of a certificate, may sign. If
// allowed is not nil, it lists those that may be used.
func signatures(key ssh.PublicKey, allowed []string) []string {
	cert, certified := key.(*ssh.Certificate)
	if certified {
		key = cert.Key
	}
	algorithms := []string{key.Type()}
	if key.Type() == ssh.KeyAlgoRSA {
		algorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return slices.DeleteFunc(algorithms, func(name string) bool {
		if certified {
			name = strings.TrimSuffix(name, "@openssh.com") + "-cert-v01@openssh.com"
		}
		return allowed != nil && !slices.Contains(allowed, name)
	})
}
