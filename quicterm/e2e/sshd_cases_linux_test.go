package e2e

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// keyCases are about the lines of authorized_keys, and about the files.
var keyCases = []policyCase{
	{name: "from-near", keys: `from="127.0.0.0/8" KEY`, want: "ran\n"},
	{name: "from-far", keys: `from="10.0.0.0/8" KEY`},
	{name: "from-not", keys: `from="*,!127.0.0.1" KEY`},
	{name: "from-bits", keys: `from="127.0.0.1/8" KEY`},
	{name: "from-twice", keys: `from="*",from="127.*" KEY`},
	{name: "expires-late", keys: `expiry-time="20990101" KEY`, want: "ran\n"},
	{name: "expires-early", keys: `expiry-time="20200101" KEY`},
	{name: "expires-never", keys: `expiry-time="soon" KEY`},
	{name: "restricted", keys: `restrict KEY`, want: "ran\n"},
	{name: "no-pty", keys: `no-pty,No-Port-Forwarding KEY`, want: "ran\n"},
	{name: "environment", keys: `environment="A=b" KEY`, want: "ran\n"},
	{name: "bad-variable", keys: `environment="A-B=c" KEY`},
	{name: "permitopen", keys: `permitopen="host:22" KEY`, want: "ran\n"},
	{name: "bad-permitopen", keys: `permitopen="host" KEY`},
	{name: "key-principals", keys: `principals="x" KEY`},
	{name: "key-authority", keys: `cert-authority KEY`},
	{name: "unknown-option", keys: `frobnicate KEY`},
	{name: "second-line", keys: "frobnicate KEY\nKEY", want: "ran\n"},
	{name: "two-commands", keys: `command="a",command="b" KEY`},
	{name: "quoted", keys: `Command="echo \"a  b\"" KEY`, want: "a  b\n"},
	{name: "comments", keys: "# KEY\n\n \t KEY", want: "ran\n"},
	{name: "only-comment", keys: "#KEY"},
	{name: "crlf", keys: "# a\r\nKEY\r\n", want: "ran\n"},
	{name: "long-line", keys: "# " + strings.Repeat("x", 200_000) + "\nKEY " + strings.Repeat("y", 200_000), want: "ran\n"},
	{name: "junk", keys: "ssh-ed25519 AAAA\n\x00\xff\nKEY", want: "ran\n"},

	{name: "open-home", change: func(home string) error { return os.Chmod(home, 0o777) }},
	{name: "open-folder", change: func(home string) error { return os.Chmod(home+"/.ssh", 0o777) }},
	{name: "open-keys", change: func(home string) error { return os.Chmod(home+"/.ssh/authorized_keys", 0o666) }},
	{name: "others-keys", change: func(home string) error { return os.Chown(home+"/.ssh/authorized_keys", 69999, 69999) }},
	{name: "others-home", change: func(home string) error { return os.Chown(home, 69999, 69999) }},
	{name: "linked", change: func(home string) error {
		file := home + "/.ssh/authorized_keys"
		return errors.Join(os.Rename(file, home+"/keys"), os.Symlink("../keys", file))
	}, want: "ran\n"},
	{name: "linked-open", change: func(home string) error {
		file := home + "/.ssh/authorized_keys"
		return errors.Join(os.Mkdir(home+"/open", 0o700), os.Rename(file, home+"/open/keys"), os.Chmod(home+"/open", 0o777),
			os.Symlink("../open/keys", file))
	}},
	{name: "dangling", change: func(home string) error {
		return errors.Join(os.Remove(home+"/.ssh/authorized_keys"), os.Symlink("none", home+"/.ssh/authorized_keys"))
	}},
	{name: "odd-shell", shell: "/etc/odd-sh", want: "ran\n"}, // not in /etc/shells

	{name: "program", keys: "#", config: "AuthorizedKeysCommandUser nobody\nAuthorizedKeysCommand /etc/ssh/print %u", want: "printed for program\n"},
	{name: "program-plain", keys: "#", config: "AuthorizedKeysCommandUser nobody\nAuthorizedKeysCommand /etc/ssh/print", want: "printed for program-plain\n"},
	{name: "program-key", keys: "#", config: "AuthorizedKeysCommandUser nobody\nAuthorizedKeysCommand /etc/ssh/by-key %t %k %f", want: "ran\n"},
	{name: "program-not-asked", config: "AuthorizedKeysCommandUser nobody\nAuthorizedKeysCommand /etc/ssh/print", want: "ran\n"},
	{name: "program-fails", keys: "#", config: "AuthorizedKeysCommandUser nobody\nAuthorizedKeysCommand /etc/ssh/fail"},
	{name: "program-open", keys: "#", config: "AuthorizedKeysCommandUser nobody\nAuthorizedKeysCommand /etc/ssh/open"},
	{name: "program-missing", keys: "#", config: "AuthorizedKeysCommandUser nobody\nAuthorizedKeysCommand /etc/ssh/none"},

	{name: "unknown-token", config: "AuthorizedKeysFile .ssh/%x .ssh/authorized_keys"},
	{name: "token-not-used", config: "AuthorizedKeysFile .ssh/authorized_keys .ssh/%x", want: "ran\n"},
	{name: "first-try", config: "MaxAuthTries 2", others: 1, want: "ran\n"},
	{name: "too-late", config: "MaxAuthTries 2", others: 2},
}

// certificate makes a case one of a certificate, which is for ops unless it is changed.
func certificate(change func(*ssh.Certificate)) func(*ssh.Certificate) {
	return func(c *ssh.Certificate) {
		c.CertType, c.ValidPrincipals = ssh.UserCert, []string{"ops"}
		c.ValidBefore = ssh.CertTimeInfinity
		c.KeyId, c.Serial = "an id", 77
		c.Extensions, c.CriticalOptions = map[string]string{"permit-pty": ""}, map[string]string{}
		if change != nil {
			change(c)
		}
	}
}

// option sets a critical option of a certificate.
func option(name, value string) func(*ssh.Certificate) {
	return certificate(func(c *ssh.Certificate) { c.CriticalOptions[name] = value })
}

const authority = `cert-authority,principals="x,ops" CA`

const trusting = "TrustedUserCAKeys /etc/ssh/ca.pub"

const principalsProgram = "\nAuthorizedPrincipalsCommandUser nobody\nAuthorizedPrincipalsCommand "

// certificateCases are about certificates of users.
var certificateCases = []policyCase{
	{name: "cert", cert: certificate(nil), keys: authority, want: "ran\n"},
	{name: "cert-no-option", cert: certificate(nil), keys: "CA"},
	{name: "cert-other-names", cert: certificate(nil), keys: `cert-authority,principals="x" CA`},
	{name: "cert-not-me", cert: certificate(nil), keys: "cert-authority CA"},
	{name: "cert-me", cert: certificate(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"x", "cert-me"} }), keys: "cert-authority CA", want: "ran\n"},
	{name: "cert-wrong-ca", cert: certificate(nil), keys: `cert-authority,principals="ops" KEY`},
	{name: "cert-expired", cert: certificate(func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Now().Unix() - 60) }), keys: authority},
	{name: "cert-early", cert: certificate(func(c *ssh.Certificate) { c.ValidAfter = uint64(time.Now().Unix() + 3600) }), keys: authority},
	{name: "cert-of-host", cert: certificate(func(c *ssh.Certificate) { c.CertType = ssh.HostCert }), keys: authority},
	{name: "cert-unknown", cert: option("mystery", "x"), keys: authority},
	{name: "cert-forced", cert: option("force-command", "echo forced"), keys: authority, want: "forced\n"},
	{name: "cert-forced-twice", cert: option("force-command", "echo a"), keys: `command="echo b",` + authority},
	{name: "cert-near", cert: option("source-address", "10.0.0.0/8,127.0.0.1/32"), keys: authority, want: "ran\n"},
	{name: "cert-far", cert: option("source-address", "10.0.0.0/8"), keys: authority},
	{name: "cert-from", cert: certificate(nil), keys: `from="10.0.0.0/8",` + authority},
	{name: "cert-and-key", cert: certificate(nil), want: "ran\n"}, // the key in it gets in
	{name: "cert-revoked", cert: certificate(nil), keys: authority, config: "RevokedKeys /etc/ssh/ca.pub"},
	{name: "cert-algorithms", cert: certificate(nil), keys: authority, config: "PubkeyAcceptedAlgorithms ssh-ed25519"},
	{name: "trusted", cert: certificate(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"trusted"} }), keys: "#", config: trusting, want: "ran\n"},
	{name: "trusted-other", cert: certificate(nil), keys: "#", config: trusting},
	{name: "trusted-no-name", cert: certificate(func(c *ssh.Certificate) { c.ValidPrincipals = nil }), keys: "#", config: trusting},
	{name: "trusted-by-file", cert: certificate(nil), keys: "#", file: ".ssh/names", config: trusting + "\nAuthorizedPrincipalsFile /etc/ssh/names", want: "named\n"},
	{name: "trusted-no-file", cert: certificate(nil), keys: "#", config: trusting + "\nAuthorizedPrincipalsFile .ssh/none"},
	{name: "trusted-other-file", cert: certificate(nil), keys: "other\n#ops", file: ".ssh/names", config: trusting + "\nAuthorizedPrincipalsFile %h/.ssh/names"},
	{name: "trusted-token", cert: certificate(nil), keys: "#", config: trusting + "\nAuthorizedPrincipalsFile .ssh/%x"},
	{name: "trusted-program", cert: certificate(nil), keys: "#", config: trusting + principalsProgram + "/bin/false"},
	{name: "trusted-program-other", cert: certificate(nil), keys: "#", config: trusting + principalsProgram + "/etc/ssh/principals dev"},
	{name: "trusted-program-no-name", cert: certificate(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"trusted-program-no-name"} }),
		keys: "#", config: trusting + principalsProgram + "/etc/ssh/principals ops"},
	{name: "trusted-program-file", cert: certificate(nil), keys: "#", file: ".ssh/names",
		config: trusting + "\nAuthorizedPrincipalsFile /etc/ssh/names" + principalsProgram + "/bin/false", want: "named\n"},
	{name: "untrusted-program", cert: certificate(nil), keys: "#", config: trusting + ".none" + principalsProgram + "/etc/ssh/principals ops"},
}

// writeCertificate writes a copy of a private key, and a certificate of it, and returns the former's name.
func writeCertificate(t *testing.T, dir string, c *policyCase, private []byte, key ssh.PublicKey, authority ssh.Signer) string {
	t.Helper()
	cert := &ssh.Certificate{Key: key}
	c.cert(cert)
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "id-"+c.name)
	err := errors.Join(os.WriteFile(file, private, 0o600), os.WriteFile(file+"-cert.pub", ssh.MarshalAuthorizedKey(cert), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return file
}
