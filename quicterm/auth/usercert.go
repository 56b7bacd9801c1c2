package auth

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/crypto/ssh"
)

func (k *UserKey) certified() bool {
	_, ok := k.Public.(*ssh.Certificate)
	return ok
}

// Certificates returns the certificates to offer to a server, in the order of ssh: first those in files, for keys
// that are among keys or agentKeys, then the others of the agent unless only is set. It skips files that do not
// exist, and those that are in skipped with the reason.
func Certificates(keys, agentKeys []*UserKey, files []string, only bool) (certificates []*UserKey, skipped []error) {
	offered := make(map[string]bool)
	add := func(k *UserKey) {
		if blob := string(k.Public.Marshal()); !offered[blob] {
			offered[blob] = true
			certificates = append(certificates, k)
		}
	}
	for _, file := range files {
		public, err := publicFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		cert, ok := public.(*ssh.Certificate)
		if err == nil && (!ok || cert.CertType != ssh.UserCert) {
			err = errors.New("it has no certificate of a user")
		}
		if err != nil {
			skipped = append(skipped, fmt.Errorf("certificate file %s: %w", file, err))
			continue
		}
		for _, from := range [][]*UserKey{agentKeys, keys} {
			for _, k := range from {
				if equal(k.Public, cert) || equal(k.Public, cert.Key) {
					add(&UserKey{Public: cert, Source: file, signer: k.signer, silent: k.silent})
				}
			}
		}
	}
	for _, k := range agentKeys {
		if k.certified() && !only {
			add(k)
		}
	}
	return certificates, skipped
}
