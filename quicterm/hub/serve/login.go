package serve

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/hub"
)

// rules say which keys may log in. The largest RSA key is in keyAllowed.
var rules = auth.KeyRules{
	Algorithms: []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256,
		ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512,
	},
	MinRSA: 2048,
}

// maxRSA bounds an RSA key in bits: what a larger one makes the hub compute is the key's choice.
const maxRSA = 8192

// userPresent is a flag in the signature of a security key: somebody has touched it (PROTOCOL.u2f).
const userPresent = 0x01

var (
	errUnknown   = errors.New("its key is not in the list")
	errSignature = errors.New("its signature is not valid")
	errNonce     = errors.New("it does not prove its nkey")
	errTime      = fmt.Errorf("the time of its signature is not within %v of this clock", hub.MaxSkew)
)

// Check lets a connection of NATS in, or not (server.Authentication).
func (h *Hub) Check(c server.ClientAuthentication) bool {
	said := c.GetOpts()
	if c.Kind() != server.CLIENT || said == nil {
		return false
	}
	address, ok := c.RemoteAddress().(*net.TCPAddr)
	if !ok { // from this process
		if subtle.ConstantTimeCompare([]byte(said.Token), []byte(h.secret)) != 1 {
			return false
		}
		c.RegisterUser(&server.User{})
		return true
	}
	g := h.front.find(address.AddrPort())
	if g == nil { // from this machine, and not by front
		return false
	}
	list := h.list.Load()
	member, id, err := h.verify(list, said, c.GetNonce(), time.Now())
	if err == nil {
		err = h.front.logIn(g, id, member)
	}
	if err != nil {
		h.config.Log.Info("a login is refused", "from", g.conn.RemoteAddr(), "error", err)
		return false
	}
	if now := h.list.Load(); now != list && !stays(list, now, id, member) { // it has changed meanwhile
		return false
	}
	c.RegisterUser(&server.User{Username: member.Name, Permissions: permissions(list, id, member)})
	return true
}

// verify returns whose login it is.
func (h *Hub) verify(list *hub.List, said *server.ClientOpts, nonce []byte, now time.Time) (*hub.Member, hub.UserID, error) {
	var id hub.UserID
	credential, err := hub.ParseCredential(said.Token)
	if err != nil {
		return nil, id, err
	}
	key, err := ssh.ParsePublicKey(credential.Key)
	if err != nil {
		return nil, id, errUnknown
	}
	id = hub.UserIDOf(key)
	member := list.Members[id]
	if member == nil || subtle.ConstantTimeCompare(member.Key.Marshal(), credential.Key) != 1 {
		return nil, id, fmt.Errorf("%w: %s", errUnknown, ssh.FingerprintSHA256(key))
	}
	if err := rules.Check(key); err != nil {
		return nil, id, err
	}
	if auth.BitsRSA(key) > maxRSA {
		return nil, id, fmt.Errorf("an RSA key of more than %d bits", maxRSA)
	}
	if skew := now.Sub(credential.Time); skew.Abs() > hub.MaxSkew {
		return nil, id, errTime
	}
	if err := checkNonce(said, nonce); err != nil {
		return nil, id, err
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(credential.Signature, &signature); err != nil {
		return nil, id, errSignature
	}
	if !slices.Contains(auth.Algorithms(key.Type()), signature.Format) || !touched(key, &signature) {
		return nil, id, errSignature
	}
	for _, name := range h.config.Names {
		if key.Verify(hub.Statement(name, credential.Time, said.Nkey), &signature) == nil {
			return member, id, nil
		}
	}
	return nil, id, errSignature
}

// checkNonce checks that the login has the nkey that its key has signed, on this very connection.
func checkNonce(said *server.ClientOpts, nonce []byte) error {
	if len(nonce) == 0 || !nkeys.IsValidPublicUserKey(said.Nkey) {
		return errNonce
	}
	public, err := nkeys.FromPublicKey(said.Nkey)
	if err != nil {
		return errNonce
	}
	signature, err := base64.RawURLEncoding.DecodeString(said.Sig)
	if err != nil || public.Verify(nonce, signature) != nil {
		return errNonce
	}
	return nil
}

// touched reports whether a security key was touched, or the key is none.
func touched(key ssh.PublicKey, signature *ssh.Signature) bool {
	if key.Type() != ssh.KeyAlgoSKED25519 && key.Type() != ssh.KeyAlgoSKECDSA256 {
		return true
	}
	return len(signature.Rest) > 0 && signature.Rest[0]&userPresent != 0
}

// permissions are the subjects that a login may use. All others are denied.
func permissions(list *hub.List, id hub.UserID, m *hub.Member) *server.Permissions {
	if m.Host {
		return &server.Permissions{
			Publish:   allow(hub.AnnounceSubject(m.Name), hub.FromSubject(m.Name, hub.Any, hub.Any)),
			Subscribe: allow(hub.CallSubject(m.Name, hub.Any), hub.ToSubject(m.Name, hub.Any, hub.Any)),
		}
	}
	user := id.String()
	publish := []string{hub.ListSubject(user)}
	if len(m.Tags) == 0 {
		publish = append(publish, hub.CallSubject(hub.Any, user), hub.ToSubject(hub.Any, user, hub.Any))
	} else {
		for _, host := range visible(list, m) {
			publish = append(publish, hub.CallSubject(host.Name, user), hub.ToSubject(host.Name, user, hub.Any))
		}
	}
	return &server.Permissions{
		Publish:   allow(publish...),
		Subscribe: allow(hub.AnswerSubject(user, hub.Any), hub.FromSubject(hub.Any, user, hub.Any)),
	}
}

func allow(subjects ...string) *server.SubjectPermission {
	return &server.SubjectPermission{Allow: subjects}
}

// visible returns the hosts of a list that a person may see.
func visible(list *hub.List, person *hub.Member) []*hub.Member {
	var hosts []*hub.Member
	for _, host := range list.Hosts {
		if person.Sees(host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// stays reports whether a login by an old list may continue by another one: it is the same member, with the same
// permissions.
func stays(old, list *hub.List, id hub.UserID, m *hub.Member) bool {
	now := list.Members[id]
	if now == nil || !now.Equal(m) {
		return false
	}
	return m.Host || len(m.Tags) == 0 || slices.EqualFunc(visible(old, m), visible(list, now), func(a, b *hub.Member) bool { return a.Name == b.Name })
}
