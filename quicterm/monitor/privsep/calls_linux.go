package privsep

// networkCalls are what the monitor asks of the network process.
type networkCalls struct {
	State    Call[State, None]
	Listen   Call[listeningSocket, None]
	Unlisten Call[uint64, None]
	Local    Call[handedClient, None]
	Clients  Call[None, Clients]
	Metrics  Call[None, []byte]
}

// A listeningSocket is a socket that the network process serves.
type listeningSocket struct {
	ID      uint64  `cbor:"1,keyasint"`
	Purpose Purpose `cbor:"2,keyasint"`
	passed  `cbor:"-"`
}

// A handedClient is a client whose connection the network process serves.
type handedClient struct {
	Client Local `cbor:"1,keyasint"`
	passed `cbor:"-"`
}
