package auth

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// A UserKey is a key that the user can sign with, or a certificate for it.
type UserKey struct {
	Public ssh.PublicKey
	Source string // its file or agent, for people

	// signer returns the signer. It may ask for a passphrase. It is nil if only the public key is known.
	signer func() (ssh.Signer, error)
	silent bool // signer does not ask for a passphrase
}

// NewUserKey returns a key whose signer asks the user for nothing.
func NewUserKey(s ssh.Signer, source string) *UserKey {
	return &UserKey{
		Public: s.PublicKey(),
		Source: source,
		signer: func() (ssh.Signer, error) { return s, nil },
		silent: true,
	}
}

// Silent reports whether signing asks the user for nothing: no passphrase, no touch.
func (k *UserKey) Silent() bool { return k.silent && !strings.HasPrefix(k.Public.Type(), "sk-") }

// Signer returns the signer of the key. It blocks while a passphrase is asked for.
func (k *UserKey) Signer() (ssh.Signer, error) {
	signer, err := k.signer()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.Source, err)
	}
	return signer, nil
}

// minRSA is the size of the smallest RSA key that is accepted, in bits.
const minRSA = 2048

// ParseUserKey decodes a public key (RFC 4253, 6.6) or the certificate of one. It refuses
// certificates of hosts, and types and sizes that are not secure.
func ParseUserKey(blob []byte) (ssh.PublicKey, error) {
	parsed, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, err
	}
	if cert, ok := parsed.(*ssh.Certificate); ok && cert.CertType != ssh.UserCert {
		return nil, errors.New("the certificate is not one of a user")
	}
	key := PlainKey(parsed)
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256:
		return parsed, nil
	case ssh.KeyAlgoRSA:
		if BitsRSA(key) >= minRSA {
			return parsed, nil
		}
		return nil, fmt.Errorf("RSA keys need at least %d bits", minRSA)
	}
	return nil, fmt.Errorf("keys of type %s are not accepted", key.Type())
}

// Certified reports whether a public key (RFC 4253, 6.6) is a certificate.
func Certified(blob []byte) bool {
	key, err := ssh.ParsePublicKey(blob)
	_, ok := key.(*ssh.Certificate)
	return err == nil && ok
}

// PlainKey returns the key of a certificate; another key is itself.
func PlainKey(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

// An UnprotectedError is the error of a private key file that others may read.
type UnprotectedError struct {
	File string
	Mode fs.FileMode
}

func (e *UnprotectedError) Error() string {
	return fmt.Sprintf("private key file %s is not used: others may read it, its mode is %04o", e.File, e.Mode)
}

// maxIdentity bounds the size of a private key file, in bytes.
const maxIdentity = 1 << 20

// IdentityFile returns the key in a private key file. If the file is encrypted, signing
// calls ask for the passphrase. It refuses a file that others may read with an
// *UnprotectedError.
func IdentityFile(file string, ask func(prompt string) ([]byte, error)) (*UserKey, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if unprotected(info) {
		return nil, &UnprotectedError{file, info.Mode().Perm()}
	}
	content, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err == nil {
		return NewUserKey(signer, file), nil
	}
	missing := new(ssh.PassphraseMissingError)
	if !errors.As(err, &missing) {
		return nil, fmt.Errorf("identity file %s: %w", file, err)
	}
	public := missing.PublicKey
	if public == nil { // an old format, which encrypts the public key too
		if public, err = publicFile(file + ".pub"); err != nil {
			return nil, fmt.Errorf(
				"identity file %s is encrypted, and its public key is not beside it: make it with ssh-keygen -y: %w", file, err)
		}
	}
	return &UserKey{
		Public: public,
		Source: file,
		signer: func() (ssh.Signer, error) { return decrypt(content, file, ask) },
	}, nil
}

// maxPassphrases is how often a passphrase is asked for, as by ssh.
const maxPassphrases = 3

// decrypt asks for the passphrase of a private key until it is the right one.
func decrypt(content []byte, file string, ask func(prompt string) ([]byte, error)) (signer ssh.Signer, err error) {
	for range maxPassphrases {
		var passphrase []byte
		if passphrase, err = ask(fmt.Sprintf("Enter passphrase for key '%s': ", file)); err != nil {
			return nil, err
		}
		signer, err = ssh.ParsePrivateKeyWithPassphrase(content, passphrase)
		if !errors.Is(err, x509.IncorrectPasswordError) {
			return signer, err
		}
	}
	return nil, err
}

func publicFile(file string) (ssh.PublicKey, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(b)
	return key, err
}

// identity returns the key of an identity file. Where that is a public key, or one is beside it, the agent may have the
// private one. The error says why the file is no private key to use.
func identity(file string, ask func(prompt string) ([]byte, error)) (*UserKey, error) {
	if public, err := publicFile(file); err == nil {
		return &UserKey{Public: public}, nil
	}
	k, err := IdentityFile(file, ask)
	if err == nil {
		return k, nil
	}
	public, missing := publicFile(file + ".pub")
	if missing != nil {
		return nil, err
	}
	return &UserKey{Public: public}, err
}

// UserKeys returns the keys to offer, without certificates, in the order of ssh: first those that are both in the
// agent and in an identity file, then the other keys of the agent unless only is set, then the other files. It skips
// files that do not exist, and those that are in skipped with the reason.
func UserKeys(
	agentKeys []*UserKey, files []string, only bool, ask func(prompt string) ([]byte, error),
) (keys []*UserKey, skipped []error) {
	var both, rest, fromFiles []*UserKey
	inFiles := make(map[string]bool)
	inAgent := make(map[string]*UserKey)
	agentKeys = slices.DeleteFunc(slices.Clone(agentKeys), (*UserKey).certified)
	for _, k := range agentKeys {
		inAgent[string(k.Public.Marshal())] = k
	}
	for _, file := range files {
		k, err := identity(file, ask)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			skipped = append(skipped, err)
		}
		if k == nil {
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
	return append(append(both, rest...), fromFiles...), skipped
}
