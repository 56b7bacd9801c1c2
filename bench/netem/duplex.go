package netem

import "sync"

// A duplex is a link each way, and what arrived over it.
type duplex struct {
	mu       *sync.Mutex // of the links' owner
	up, down *Link
	arrived  struct{ up, down uint64 } // bytes
}

func newDuplex(mu *sync.Mutex, cfg Config, seed uint64) duplex {
	return duplex{mu: mu, up: NewLink(cfg, seed), down: NewLink(cfg, seed+1)}
}

// Set changes what both links do from now on. Packets under way still arrive.
func (d *duplex) Set(cfg Config) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.up.Set(cfg)
	d.down.Set(cfg)
}

// SetDown changes only the link to the client.
func (d *duplex) SetDown(cfg Config) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down.Set(cfg)
}

// Counters returns what was offered to the link from the client, and to the one to it.
func (d *duplex) Counters() (up, down Counters) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.up.Counters(), d.down.Counters()
}

// Arrived returns how many bytes have arrived from the client, and at it.
func (d *duplex) Arrived() (up, down uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arrived.up, d.arrived.down
}
