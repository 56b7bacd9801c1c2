package wire

// Ask is the first message on the unix socket of a daemon. It asks for a Grant for the account at
// the other end of the socket.
type Ask struct {
	// Carrier asks for a grant without a token. What follows the Grant on the socket is the
	// carrier of a client that needs no login.
	Carrier bool `cbor:"1,keyasint,omitempty"`
	// Client and Server are the two ends, as address:port, of the ssh connection over which the
	// client is reached. They are empty if these are not known.
	Client string `cbor:"2,keyasint,omitempty"`
	Server string `cbor:"3,keyasint,omitempty"`
	// Reported says for the log by what sshd has let the client in, as far as the process knows that.
	Reported string `cbor:"4,keyasint,omitempty" text:"summary"`
}

// Grant is a daemon's answer to an Ask: how to reach the daemon, and a token for the account.
type Grant struct {
	Address  string `cbor:"1,keyasint" json:"address"`                      // to dial from the same machine
	HostKey  []byte `cbor:"2,keyasint" json:"host_key"`                     // RFC 4253, 6.6
	Token    []byte `cbor:"3,keyasint,omitempty" json:"token,omitempty"`    // none with a carrier
	Software string `cbor:"4,keyasint,omitempty" json:"software,omitempty"` // name and version of the daemon
	Protocol string `cbor:"5,keyasint,omitempty" json:"protocol,omitempty"` // its ALPN; if empty, the first
	// Warning says, in one line for the user, what is wrong on the server although there is a grant.
	Warning string `cbor:"6,keyasint,omitempty" json:"warning,omitempty"`
}
