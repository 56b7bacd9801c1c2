//go:build linux || darwin

package privsep

import (
	"io"
	"net/netip"
	"syscall"
	"time"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A Setup is what the network half has for its whole life.
type Setup struct {
	Software     string        `cbor:"1,keyasint"`
	Begun        time.Time     `cbor:"2,keyasint"` // when the daemon was started
	Certificates []Certificate `cbor:"3,keyasint"` // of the host keys, best first

	// ResetKey and TokenKey are those of QUIC. Each socket derives a reset key of its own.
	ResetKey [32]byte `cbor:"4,keyasint"`
	TokenKey [32]byte `cbor:"5,keyasint"`

	MaxUnauthenticated int `cbor:"6,keyasint"`
	MaxSessionsPerUser int `cbor:"7,keyasint"`

	WebProxy []netip.Prefix `cbor:"8,keyasint"` // the setting
	WebTLS   bool           `cbor:"9,keyasint"` // the page is served with a certificate

	Apart bool `cbor:"-"` // it is another process than the monitor
}

// A Certificate is the public part of a host key.
type Certificate struct {
	Key       []byte `cbor:"1,keyasint"` // RFC 4253, 6.6
	Plain     []byte `cbor:"2,keyasint"` // TLS certificate over the key, DER
	Certified []byte `cbor:"3,keyasint"` // the same with the ssh certificate of the key, or nothing
}

// A State is what may change while the network half runs.
type State struct {
	AuthTimeout time.Duration `cbor:"1,keyasint"`
	LogLevel    string        `cbor:"2,keyasint"`
	TicketKeys  [][32]byte    `cbor:"3,keyasint"` // the one for new tickets first
	Draining    bool          `cbor:"4,keyasint"`
	WebChain    [][]byte      `cbor:"5,keyasint"` // the page's certificate first, DER; nothing if it cannot be read
}

// NotReady returns why the daemon takes no new sessions, or nothing.
func (s State) NotReady() string {
	if s.Draining {
		return "draining"
	}
	return ""
}

// A LoginID names a login. It is random, and only the network half that has proven the login has it.
type LoginID [16]byte

// A Path is the addresses of a connection as it is now. They are not valid if unknown, as over ssh, or over the web behind
// a proxy that does not tell.
type Path struct {
	Client netip.AddrPort `cbor:"1,keyasint"`
	Server netip.AddrPort `cbor:"2,keyasint"`
	Web    bool           `cbor:"3,keyasint"` // it is a WebSocket
}

// WithoutZone returns an address without its zone, which may be any bytes.
func WithoutZone(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port())
}

// From returns the address of the client, or that of this machine if it is unknown because ssh has brought the client. If
// a proxy has, it is an address that nobody has.
func (p Path) From() netip.Addr {
	if p.Hidden() {
		return netip.IPv6Unspecified()
	}
	return orLoopback(p.Client.Addr())
}

// Hidden reports whether a proxy does not tell where the client is.
func (p Path) Hidden() bool { return p.Web && !p.Client.IsValid() }

// at returns the address of the server, or that of this machine if it is unknown.
func (p Path) At() netip.Addr { return orLoopback(p.Server.Addr()) }

// String says where a client is, for people: its address and port, "ssh" or "web".
func (p Path) String() string {
	switch {
	case p.Client.IsValid():
		return p.Client.String()
	case p.Web:
		return "web"
	}
	return "ssh"
}

func orLoopback(a netip.Addr) netip.Addr {
	if !a.IsValid() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return a
}

// A Sign asks for the signature of a handshake.
type Sign struct {
	Key     int    `cbor:"1,keyasint"` // index in Setup.Certificates
	Message []byte `cbor:"2,keyasint"` // RFC 8446, 4.4.3
	Hash    uint   `cbor:"3,keyasint"` // a crypto.Hash
	Web     bool   `cbor:"4,keyasint"` // by the key of the page's certificate instead
}

// An Offer asks which keys an account accepts.
type Offer struct {
	Attempt uint64   `cbor:"1,keyasint"` // number of the connection: for an attempt, the files are read once in a while
	Source  string   `cbor:"2,keyasint"` // who asks; sources share the name service fairly
	User    string   `cbor:"3,keyasint"`
	Keys    [][]byte `cbor:"4,keyasint"` // RFC 4253, 6.6
	Path    Path     `cbor:"5,keyasint"`
	Earlier int      `cbor:"6,keyasint"` // keys that the client has tried before, in vain

	// Sealed is that of the Verdicts of the same Offer, in a Proof, or nothing.
	Sealed []byte `cbor:"7,keyasint"`
}

// Verdicts say for each key of an Offer why the account does not accept it; empty texts are of
// those that it accepts.
type Verdicts struct {
	Refused []string `cbor:"1,keyasint"`
	Time    []byte   `cbor:"2,keyasint"` // the monitor's: see wire.Offer

	// Sealed are the verdicts for the monitor alone, which keeps none, or nothing.
	Sealed []byte `cbor:"3,keyasint"`
}

// A Proof is a signature by one of the keys of an Offer.
type Proof struct {
	Offer     Offer  `cbor:"1,keyasint"`
	Key       int    `cbor:"2,keyasint"`
	Host      []byte `cbor:"3,keyasint"` // which host key, time and exporter were signed: see auth.Statement
	Time      []byte `cbor:"4,keyasint"`
	Exporter  []byte `cbor:"5,keyasint"`
	Signature []byte `cbor:"6,keyasint"`
}

// A Token is the token of a grant as a proof.
type Token struct {
	Token []byte `cbor:"1,keyasint"`
	Path  Path   `cbor:"2,keyasint"`
}

// A Login is what the network half knows of a client that has proven who it is.
type Login struct {
	ID      LoginID `cbor:"1,keyasint"`
	Account string  `cbor:"2,keyasint"`
	UID     uint32  `cbor:"3,keyasint"`

	Credential Credential `cbor:"4,keyasint"`
}

// By is the login on whose behalf something is asked.
type By struct {
	Login LoginID `cbor:"1,keyasint"`
	Path  Path    `cbor:"2,keyasint"`
}

// A Pass is a request to the holder of a session: a Kill or a Clear. The monitor does not decode
// it.
type Pass struct {
	By      By        `cbor:"1,keyasint"`
	Session string    `cbor:"2,keyasint"`
	Type    wire.Type `cbor:"3,keyasint"`
	Payload []byte    `cbor:"4,keyasint"`
	Others  []string  `cbor:"5,keyasint"` // further sessions of a Kill
}

// An Answer is the message by which a holder answers.
type Answer struct {
	Type    wire.Type `cbor:"1,keyasint"`
	Payload []byte    `cbor:"2,keyasint"`
}

// A Revoke is that of a client.
type Revoke struct {
	By      By          `cbor:"1,keyasint"`
	Request wire.Revoke `cbor:"2,keyasint"`
}

// An Enroll is that of a client.
type Enroll struct {
	By      By          `cbor:"1,keyasint"`
	Request wire.Enroll `cbor:"2,keyasint"`
}

// An Attach is that of a client. Payload is its message, which the monitor passes on to the holder
// without decoding it; the other fields decide which holder that is, and what a new one runs. The
// holder trusts nothing in the message more than the rights of the login, which it has from the
// monitor.
type Attach struct {
	By        By              `cbor:"1,keyasint"`
	Mode      wire.Mode       `cbor:"2,keyasint"`
	Session   string          `cbor:"3,keyasint"`
	Instance  wire.InstanceID `cbor:"4,keyasint"`
	PTY       bool            `cbor:"5,keyasint"`
	Size      wire.Size       `cbor:"6,keyasint"`
	Env       [][2]string     `cbor:"7,keyasint"`
	Command   string          `cbor:"8,keyasint"`
	Role      wire.Role       `cbor:"9,keyasint"`
	Payload   []byte          `cbor:"10,keyasint"`
	Datagrams bool            `cbor:"11,keyasint"`
	Dir       string          `cbor:"12,keyasint"`
	Required  uint8           `cbor:"13,keyasint"`
	Side      wire.Side       `cbor:"14,keyasint"`
	Agent     bool            `cbor:"15,keyasint"` // the client offers its ssh agent
	Terminfo  []byte          `cbor:"16,keyasint"`
}

// An Attached is the answer of a holder to an Attach, and the carrier to it. The caller closes the
// carrier.
type Attached struct {
	ID      wire.SessionID  `cbor:"1,keyasint"`
	Answer  Answer          `cbor:"2,keyasint"`
	Carrier carrier.Carrier `cbor:"-"`

	login LoginID // of the request: the other half has the carrier as long as the login
}

// A Resume is that of a client, as the client has sent it.
type Resume struct {
	Payload   []byte `cbor:"1,keyasint"`
	Path      Path   `cbor:"2,keyasint"`
	Datagrams bool   `cbor:"3,keyasint"`
}

// A Resumed is the answer of a holder to a Resume.
type Resumed struct {
	// NoSession and Denied are refusals: there is no holder, or it does not accept the proof. There
	// is no carrier then.
	NoSession bool `cbor:"1,keyasint"`
	Denied    bool `cbor:"2,keyasint"`
	Gone      bool `cbor:"3,keyasint"` // with a refusal: see wire.Denied

	// Answer is for the client: Resumed or an Error.
	Answer  Answer          `cbor:"4,keyasint"`
	Carrier carrier.Carrier `cbor:"-"`

	// With Resumed: the login of the client, for Check alone, as the holder knows it, the session's
	// name, and for how long the client was not heard.
	Login   Login         `cbor:"5,keyasint"`
	Session string        `cbor:"6,keyasint"`
	Away    time.Duration `cbor:"7,keyasint"`
}

// Numbers are what the monitor counts, and those of the moment, by the series of the metric.
type Numbers map[string]float64

// Clients are the clients that the network half is connected to.
type Clients struct {
	Connections int64            `cbor:"1,keyasint"` // also before their login
	Unused      time.Duration    `cbor:"2,keyasint"` // since when there is none
	Sessions    []SessionClients `cbor:"3,keyasint"`
	Memory      uint64           `cbor:"4,keyasint"` // of the network half, if that is another process
}

// SessionClients are those of one session, the one that came first first.
type SessionClients struct {
	ID      wire.SessionID `cbor:"1,keyasint"`
	Clients []ClientStatus `cbor:"2,keyasint"`
}

// A ClientStatus is what an operator sees of a client that is connected to a session.
type ClientStatus struct {
	Client string `json:"client"` // account@address:port
	Credential
	Role  string    `json:"role"`
	Since time.Time `json:"since"`
	Kind  string    `json:"kind"`             // of its latest connection: quic, tcp, web or ssh
	RTT   float64   `json:"rtt_ms,omitempty"` // of that
}

// A Local is a client whose carrier a process of this machine passes on, such as one that sshd has
// started for it. It is logged in: the kernel tells the account of the process.
type Local struct {
	Login Login `cbor:"1,keyasint"`
	Path  Path  `cbor:"2,keyasint"`
}

// A Listener is a socket with its purpose.
type Listener struct {
	Purpose Purpose
	Socket  Socket
}

// A Socket is a *net.UDPConn, *net.TCPListener or *net.UnixListener.
type Socket interface {
	syscall.Conn
	io.Closer
}

// A Purpose is what a socket is for.
type Purpose uint8

// The purposes of sockets.
const (
	ForQUIC Purpose = iota + 1
	ForTCP
	ForMetrics
	ForWeb
)
