package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// criticalOptions are those of user certificates (PROTOCOL.certkeys in OpenSSH). A certificate
// with another one is refused.
var criticalOptions = []string{"force-command", "source-address", "verify-required"}

// checkUserCertificate returns what a user certificate allows a client at an address, whose
// authority is trusted to name one of some principals, and which is valid at a time. Unlike some versions of sshd, it
// refuses a certificate without principals whoever has signed it.
func checkUserCertificate(
	cert *ssh.Certificate, principals []string, algorithms string, from netip.Addr, valid time.Time,
) (*Permissions, error) {
	i := slices.IndexFunc(cert.ValidPrincipals, func(p string) bool { return slices.Contains(principals, p) })
	switch {
	case cert.CertType != ssh.UserCert:
		return nil, errors.New("the certificate is not one of a user")
	case len(cert.ValidPrincipals) == 0:
		return nil, errors.New("the certificate names no principal")
	case i < 0:
		return nil, fmt.Errorf("the certificate is for %.100q, not for %.100q", cert.ValidPrincipals, principals)
	case !slices.Contains(caAlgorithms, cert.Signature.Format),
		algorithms != "" && MatchList(algorithms, cert.Signature.Format) <= 0:
		return nil, fmt.Errorf("the certificate is signed by %.50q", cert.Signature.Format)
	}
	checker := ssh.CertChecker{SupportedCriticalOptions: criticalOptions, Clock: func() time.Time { return valid }}
	if err := checker.CheckCert(cert.ValidPrincipals[i], cert); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "ssh: "))
	}
	if networks, limited := cert.CriticalOptions["source-address"]; limited && !inNetworks(networks, from) {
		return nil, fmt.Errorf("source-address of the certificate does not allow %v", from)
	}
	_, terminal := cert.Extensions["permit-pty"]
	_, verified := cert.CriticalOptions["verify-required"]
	p := &Permissions{Command: cert.CriticalOptions["force-command"], NoPTY: !terminal, Verified: verified}
	if _, forwards := cert.Extensions["permit-port-forwarding"]; !forwards {
		p.Forward.Refuse()
	}
	if _, agent := cert.Extensions["permit-agent-forwarding"]; !agent {
		p.Forward.NoAgent = true
	}
	if _, forced := cert.CriticalOptions["force-command"]; forced && p.Command == "" || !p.Valid() {
		return nil, errors.New("force-command of the certificate is not a command")
	}
	return p, nil
}

// inNetworks reports whether an address is in a list of addresses and networks. A malformed list
// has none.
func inNetworks(list string, addr netip.Addr) bool {
	in := false
	for text := range strings.SplitSeq(list, ",") {
		network, err := ParseNetwork(text)
		if err != nil || !network.IsValid() {
			return false
		}
		in = in || network.Contains(addr.Unmap().WithZone(""))
	}
	return in
}

// merge returns what is left of what a line allows and what a certificate does.
func merge(byLine, byCertificate *Permissions) (*Permissions, error) {
	p := *byLine
	if c := byCertificate.Command; c != "" {
		if p.Command != "" && p.Command != c {
			return nil, errors.New("force-command of the certificate is another command than that of the line")
		}
		p.Command = c
	}
	p.NoPTY = p.NoPTY || byCertificate.NoPTY
	p.Verified = p.Verified || byCertificate.Verified
	p.Forward = p.Forward.And(byCertificate.Forward)
	return &p, nil
}
