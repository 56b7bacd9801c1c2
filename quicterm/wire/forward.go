package wire

// The messages of a side pipe. Each is the first one of a stream there.

// Dial asks a server to connect to a host and port, or to a unix socket. Done or Error answers it; the bytes of the
// connection follow, or datagrams, for which the client need not wait.
type Dial struct {
	Host string `cbor:"1,keyasint,omitempty"`
	Port uint16 `cbor:"2,keyasint,omitempty"`
	Path string `cbor:"3,keyasint,omitempty"` // of a unix socket, in place of both
	UDP  bool   `cbor:"4,keyasint,omitempty"`
}

// Listen asks a server to listen, until the stream ends. Listening or Error answers it.
type Listen struct {
	Host string `cbor:"1,keyasint,omitempty"` // as it was given: the server's rules say which addresses that means
	Port uint16 `cbor:"2,keyasint,omitempty"` // 0 for one that is free
	Path string `cbor:"3,keyasint,omitempty"` // of a unix socket, in place of both
	ID   uint32 `cbor:"4,keyasint"`           // by which Accepted names the listener
}

// Listening answers Listen.
type Listening struct {
	Port     uint16 `cbor:"1,keyasint"` // 0 of a unix socket
	Loopback bool   `cbor:"2,keyasint"` // nobody but the server's machine reaches it
}

// Accepted is the first message of a stream that the server opens, for a connection to a listener. Nothing answers it.
type Accepted struct {
	ID uint32 `cbor:"1,keyasint"` // of the Listen or OfferAgent
}

// OfferAgent asks a server to listen where the sessions of the client look for its ssh agent, until the stream ends. Done
// or Error answers it, and what connects there speaks the protocol of agents.
type OfferAgent struct {
	ID    uint32 `cbor:"1,keyasint"` // by which Accepted names the listener
	Agent []byte `cbor:"2,keyasint"` // an [AgentID]
}

func (*Dial) Type() Type       { return TypeDial }
func (*Listen) Type() Type     { return TypeListen }
func (*Listening) Type() Type  { return TypeListening }
func (*Accepted) Type() Type   { return TypeAccepted }
func (*OfferAgent) Type() Type { return TypeOfferAgent }
