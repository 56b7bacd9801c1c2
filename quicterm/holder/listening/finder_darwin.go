package listening

// A Finder finds nothing: this system does not tell.
type Finder struct{ Mark string }

// Ports returns nothing.
func (*Finder) Ports(int) []uint16 { return nil }
