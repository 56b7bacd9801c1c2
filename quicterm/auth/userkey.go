package auth

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

const (
	// namespace keeps our signatures apart from all others made with the
	// same keys (PROTOCOL.sshsig).
	namespace = "auth@quicterm"

	// exporterLabel begins as those do that nobody has registered (RFC 5705, 4).
	exporterLabel = "EXPERIMENTAL-quicterm-auth"
	exporterSize  = 32
)

// statement returns what a user's signature is about: this connection, and the
// account on the server.
func statement(state tls.ConnectionState, user string) ([]byte, error) {
	return state.ExportKeyingMaterial(exporterLabel, []byte(user), exporterSize)
}

// A UserKey is a key that a person can sign with.
type UserKey struct {
	Public ssh.PublicKey
	Source string // where it is, for people

	// signer returns what signs with it. It may ask for a passphrase.
	signer func() (ssh.Signer, error)
	silent bool // signing needs nobody's attention
}

// Silent reports whether signing asks nothing of the person: no passphrase, no
// touch.
func (k *UserKey) Silent() bool { return k.silent && !strings.HasPrefix(k.Public.Type(), "sk-") }

// Sign proves to the server at the other end of a connection that the person
// holds the key.
func (k *UserKey) Sign(state tls.ConnectionState, user string) ([]byte, error) {
	message, err := statement(state, user)
	if err != nil {
		return nil, err
	}
	signer, err := k.signer()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Source, err)
	}
	signature, err := sshsig.Sign(bytes.NewReader(message), signer, sshsig.HashSHA512, namespace)
	if err != nil {
		return nil, fmt.Errorf("sign with %s: %w", k.Source, err)
	}
	return signature.Marshal(), nil
}

// minRSA is the least size of an RSA key, in bits.
const minRSA = 2048

// ParseUserKey decodes a public key that a user may sign with: of a type that is
// sound, and no certificate.
func ParseUserKey(blob []byte) (ssh.PublicKey, error) {
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, err
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return key, nil
	case ssh.KeyAlgoRSA:
		public, ok := key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey)
		if ok && public.N.BitLen() >= minRSA {
			return key, nil
		}
		return nil, fmt.Errorf("RSA keys need at least %d bits", minRSA)
	}
	return nil, fmt.Errorf("keys of type %s are not accepted", key.Type())
}

// ErrSignature means that a signature is not what it has to be. It says no more.
var ErrSignature = errors.New("signature does not hold")

// signatureFlags of a security key (PROTOCOL.u2f).
const flagUserVerified = 0x04

// VerifyUser checks a signature by which a client proves, on the connection
// with the given state, that its person holds a key. With verified set, a
// security key must have checked who they are, not only that they are there.
func VerifyUser(state tls.ConnectionState, user string, key ssh.PublicKey, signature []byte, verified bool) error {
	message, err := statement(state, user)
	if err != nil {
		return err
	}
	sig, err := sshsig.ParseSignature(signature)
	if err != nil {
		return ErrSignature
	}
	if err := sshsig.Verify(bytes.NewReader(message), sig, key, sig.HashAlgorithm, namespace); err != nil {
		return ErrSignature
	}
	if verified && strings.HasPrefix(key.Type(), "sk-") &&
		(len(sig.Signature.Rest) == 0 || sig.Signature.Rest[0]&flagUserVerified == 0) {
		return ErrSignature
	}
	return nil
}

// AgentKeys returns the keys of the ssh agent at a unix socket. Certificates
// are left out. The connection stays open for signing until close is called.
func AgentKeys(socket string) (keys []*UserKey, close func(), err error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("ssh agent: %w", err)
	}
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("ssh agent: %w", err)
	}
	for _, s := range signers {
		public, err := ssh.ParsePublicKey(s.PublicKey().Marshal())
		if err != nil {
			continue // of a type that this version cannot verify
		}
		if _, ok := public.(*ssh.Certificate); ok {
			continue
		}
		keys = append(keys, &UserKey{
			Public: public,
			Source: "agent key " + ssh.FingerprintSHA256(public),
			signer: func() (ssh.Signer, error) { return s, nil },
			silent: true,
		})
	}
	return keys, func() { conn.Close() }, nil
}

// IdentityFile returns the key in a private key file. If the file needs a
// passphrase, signing calls ask for it.
func IdentityFile(file string, ask func(prompt string) ([]byte, error)) (*UserKey, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err == nil {
		return &UserKey{
			Public: signer.PublicKey(),
			Source: file,
			signer: func() (ssh.Signer, error) { return signer, nil },
			silent: true,
		}, nil
	}
	missing := new(ssh.PassphraseMissingError)
	if !errors.As(err, &missing) {
		return nil, fmt.Errorf("identity file %s: %w", file, err)
	}
	public := missing.PublicKey
	if public == nil { // an old format, that encrypts this as well
		if public, err = publicFile(file + ".pub"); err != nil {
			return nil, fmt.Errorf("identity file %s needs a passphrase, and without the public key beside it qt cannot tell whether to ask for it: %w", file, err)
		}
	}
	return &UserKey{
		Public: public,
		Source: file,
		signer: func() (ssh.Signer, error) {
			passphrase, err := ask(fmt.Sprintf("Enter passphrase for key '%s': ", file))
			if err != nil {
				return nil, err
			}
			return ssh.ParsePrivateKeyWithPassphrase(content, passphrase)
		},
	}, nil
}

func publicFile(file string) (ssh.PublicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(b)
	return key, err
}

// UserKeys gathers the keys to offer, in the order of ssh: those that are both
// in the agent and in an identity file, then the rest of the agent's unless
// only is set, then the rest of the files. Files that do not exist are skipped
// if they are only defaults.
func UserKeys(agentKeys []*UserKey, files []string, only bool, ask func(prompt string) ([]byte, error)) ([]*UserKey, error) {
	var both, rest, fromFiles []*UserKey
	var failed error
	inFiles := make(map[string]bool)
	inAgent := make(map[string]*UserKey)
	for _, k := range agentKeys {
		inAgent[string(k.Public.Marshal())] = k
	}
	for _, file := range files {
		k, err := IdentityFile(file, ask)
		if errors.Is(err, fs.ErrNotExist) {
			// Its private half may be in the agent only.
			public, pubErr := publicFile(file + ".pub")
			if pubErr != nil {
				continue
			}
			k, err = &UserKey{Public: public}, nil
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		blob := string(k.Public.Marshal())
		if inFiles[blob] {
			continue
		}
		inFiles[blob] = true
		if a := inAgent[blob]; a != nil {
			both = append(both, a)
		} else if k.signer != nil {
			fromFiles = append(fromFiles, k)
		}
	}
	for _, k := range agentKeys {
		if !only && !inFiles[string(k.Public.Marshal())] {
			rest = append(rest, k)
		}
	}
	keys := append(append(both, rest...), fromFiles...)
	if len(keys) == 0 {
		return nil, failed
	}
	return keys, nil
}
