package auth

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// userCertificate returns a certificate by the key 9 for the key 1, of an account jo.
func userCertificate(t *testing.T, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	authority, err := ssh.NewSignerFromKey(edKey(9))
	if err != nil {
		t.Fatal(err)
	}
	cert := &ssh.Certificate{
		Key: public(edKey(1)), CertType: ssh.UserCert, ValidPrincipals: []string{"jo", "ops"},
		ValidAfter: uint64(today.Unix() - 60), ValidBefore: uint64(today.Unix() + 60),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": ""}, CriticalOptions: map[string]string{}},
	}
	change(cert)
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	return cert
}

// Which certificates get in by a line of authorized_keys, by an authority of sshd, and by principals of
// a file.
func TestUserCertificates(t *testing.T) {
	plain := func(*ssh.Certificate) {}
	option := func(name, value string) func(*ssh.Certificate) {
		return func(c *ssh.Certificate) { c.CriticalOptions[name] = value }
	}
	lines := strings.NewReplacer("{1}", text(public(edKey(1))), "{8}", text(public(edKey(8))), "{9}", text(public(edKey(9))))
	line, ca := "cert-authority {9}", string(ssh.MarshalAuthorizedKey(public(edKey(9))))
	for _, test := range []struct {
		name               string
		change             func(*ssh.Certificate)
		keys               string // authorized_keys; with {9} for the authority
		trusted, byName    bool   // by TrustedUserCAKeys; with principals
		principals, wanted string
	}{
		{"line", plain, line, false, false, "", "allowed"},
		{"no authority", plain, "{9}", false, false, "", "nor is the authority"},
		{"another authority", plain, "cert-authority {8}", false, false, "", "nor is the authority"},
		{"the key itself", plain, "{1}", false, false, "", "nor is the authority"},
		{"principals", plain, `principals="x,ops",` + line, false, false, "", "allowed"},
		{"other principals", plain, `principals="x",` + line, false, false, "", "not for [\"x\"]"},
		{"options", plain, `from="192.0.2.*",command="a",` + line, false, false, "", "allowed <a>"},
		{"another address", plain, `from="192.0.3.*",` + line, false, false, "", "option from"},
		{"trusted", plain, "", true, false, "", "allowed"},
		{"trusted, of a file", plain, "", true, true, "# some\n\n you\n ops \n", "allowed"},
		{"options of a file", plain, "", true, true, `command="a b, \"c" jo` + "\n", `allowed <a b, "c>`},
		{"a name behind options only", plain, "", true, true, `command="jo" x`, "names no principal"},
		{"no name in the file", plain, "", true, true, "you\n", "names no principal"},
		{"refused by the file", plain, "", true, true, "from=\"10.0.0.1\" jo", "option from"},
		{"an authority in the file", plain, "", true, true, "cert-authority,principals=\"x\" jo", "option cert-authority"},
		{"another name", func(c *ssh.Certificate) { c.ValidPrincipals = []string{"you"} }, "", true, false, "", `not for ["jo"]`},
		{"no name", func(c *ssh.Certificate) { c.ValidPrincipals = nil }, line, true, false, "", "names no principal"},
		{"a pattern", func(c *ssh.Certificate) { c.ValidPrincipals = []string{"*"} }, line, false, false, "", "not for"},
		{"expired", func(c *ssh.Certificate) { c.ValidBefore = uint64(today.Unix()) }, line, false, false, "", "expired"},
		{"for ever", func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }, line, false, false, "", "allowed"},
		{"early", func(c *ssh.Certificate) { c.ValidAfter = uint64(today.Unix() + 1) }, line, false, false, "", "not yet"},
		{"of a host", func(c *ssh.Certificate) { c.CertType = ssh.HostCert }, line, true, false, "", "not one of a user"},
		{"unknown option", option("mystery", ""), line, false, false, "", "mystery"},
		{"command", option("force-command", "x"), line, false, false, "", "allowed <x>"},
		{"empty command", option("force-command", ""), line, false, false, "", "not a command"},
		{"same command", option("force-command", "x"), `command="x",` + line, false, false, "", "allowed <x>"},
		{"two commands", option("force-command", "x"), `command="y",` + line, false, false, "", "another command"},
		{"address", option("source-address", "10.0.0.0/8,192.0.2.7"), line, false, false, "", "allowed"},
		{"wrong address", option("source-address", "10.0.0.0/8"), line, false, false, "", "source-address"},
		{"bad address", option("source-address", "192.0.2.7,x"), line, false, false, "", "source-address"},
		{"verified", option("verify-required", ""), line, false, false, "", "allowed verified"},
		{"no terminal", func(c *ssh.Certificate) { c.Extensions = nil }, line, false, false, "", "allowed no pty"},
	} {
		cert := userCertificate(t, test.change)
		s := NewSearch([]Query{{Key: cert.Marshal(), From: client}}, today)
		s.User = "jo"
		s.Read("keys", []byte(lines.Replace(test.keys)))
		if test.trusted && test.byName {
			s.TrustPrincipals("ca", []byte(ca), []byte(test.principals))
		} else if test.trusted {
			s.Trust("ca", []byte("# authorities\n"+ca))
		}
		v := s.Verdicts()[0]
		got := ""
		if p := v.Allowed; p == nil {
			got = v.Refused.Error()
		} else {
			got = "allowed"
			if p.Command != "" {
				got += " <" + p.Command + ">"
			}
			if p.Verified {
				got += " verified"
			}
			if p.NoPTY {
				got += " no pty"
			}
		}
		if got != test.wanted && (strings.HasPrefix(test.wanted, "allowed") || !strings.Contains(got, test.wanted)) {
			t.Errorf("%s: %s, want %s", test.name, got, test.wanted)
		}
	}
}

// A certificate that was proven while it was valid lets its client in later too, unless something else
// has changed.
func TestProvenCertificate(t *testing.T) {
	cert := userCertificate(t, func(*ssh.Certificate) {})
	late := today.Add(time.Hour)
	for _, test := range []struct {
		why, line string
		proven    time.Time
		want      bool
	}{
		{"not proven", "cert-authority {9}", time.Time{}, false},
		{"proven in time", "cert-authority {9}", today, true},
		{"proven too late", "cert-authority {9}", late, false},
		{"another principal now", `cert-authority,principals="x" {9}`, today, false},
		{"another address now", `cert-authority,from="10.0.0.1" {9}`, today, false},
		{"no authority any more", "", today, false},
	} {
		s := NewSearch([]Query{{Key: cert.Marshal(), From: client, Proven: test.proven}}, late)
		s.User = "jo"
		s.Read("keys", []byte(strings.ReplaceAll(test.line, "{9}", text(public(edKey(9))))))
		if v := s.Verdicts()[0]; (v.Allowed != nil) != test.want {
			t.Errorf("%s: %v, %v", test.why, v.Allowed, v.Refused)
		}
	}
}

// A certificate whose content was changed, or whose authority signs in a way that is ruled out, lets
// nobody in; and one is no key.
func TestForgedUserCertificate(t *testing.T) {
	check := func(cert *ssh.Certificate, algorithms string) error {
		_, err := checkUserCertificate(cert, []string{"jo"}, algorithms, client, today)
		return err
	}
	cert := userCertificate(t, func(*ssh.Certificate) {})
	if err := check(cert, "rsa-*,ssh-ed25519"); err != nil {
		t.Error(err)
	}
	if check(cert, "rsa-*") == nil || check(cert, "!ssh-ed25519,*") == nil {
		t.Error("an algorithm that is ruled out is accepted")
	}
	if _, err := ParseUserKey(cert.Marshal()); err != nil {
		t.Error(err)
	}
	cert.Serial++
	if err := check(cert, ""); err == nil || !strings.Contains(err.Error(), "signature") {
		t.Errorf("a changed certificate: %v", err)
	}
	host := userCertificate(t, func(c *ssh.Certificate) { c.CertType = ssh.HostCert })
	if _, err := ParseUserKey(host.Marshal()); err == nil {
		t.Error("a certificate of a host is taken for a user's")
	}
}
