package wire

// Grant is a daemon's answer to a connection to its unix socket: how to reach the
// daemon, and a token for the account at the other end of the socket.
type Grant struct {
	Address string `cbor:"1,keyasint" json:"address"`  // to dial from the same machine
	HostKey []byte `cbor:"2,keyasint" json:"host_key"` // RFC 4253, 6.6
	Token   []byte `cbor:"3,keyasint" json:"token"`
}
