package privsep

// networkCalls are what the monitor asks of the network process.
type networkCalls struct {
	State   Call[State, None]
	Listen  Call[listeningSocket, None]
	Local   Call[handedClient, None]
	Clients Call[None, Clients]
	Metrics Call[None, []byte]
}

// A listeningSocket is a socket that the network process serves until it ends. The monitor keeps it while network
// processes come and go, as a descriptor alone: with the runtime's poller, it would wake up for each packet.
type listeningSocket struct {
	Purpose Purpose `cbor:"1,keyasint"`
	passed  `cbor:"-"`
}

// A handedClient is a client whose connection the network process serves.
type handedClient struct {
	Client Local `cbor:"1,keyasint"`
	passed `cbor:"-"`
}
