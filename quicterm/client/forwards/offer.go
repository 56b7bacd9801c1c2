package forwards

import (
	"fmt"
	"net"
	"slices"
)

// Offer takes the ports at which programs of the session listen on the server, in place of those that it was called with
// last, and returns those that are new and not forwarded. Nothing listens on this machine until the user asks for one
// in the menu.
func (f *Forwards) Offer(ports []uint16) (opened []uint16) {
	l := &f.list
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.offered
	l.offered = slices.Clone(ports)
	return slices.DeleteFunc(l.offersLocked(), func(port uint16) bool { return slices.Contains(before, port) })
}

// offers returns the ports that may be opened.
func (l *list) offers() []uint16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offersLocked()
}

func (l *list) offersLocked() []uint16 {
	return slices.DeleteFunc(slices.Clone(l.offered), func(port uint16) bool {
		return slices.ContainsFunc(l.entries, func(e *entry) bool {
			return e.Kind == Local && e.Target == Address{Host: "localhost", Port: port}
		})
	})
}

// offered returns the forward of a port that is offered, to the same port of this machine if that is free.
func offered(port uint16) (spec Spec, note string) {
	spec = Spec{Kind: Local, Listen: Address{Host: "localhost", Port: port}, Target: Address{Host: "localhost", Port: port}}
	_, same := spec.Listen.network()
	for _, address := range []string{same, "localhost:0"} {
		if c, err := net.Listen("tcp", address); err == nil {
			spec.Listen.Port = uint16(c.Addr().(*net.TCPAddr).Port)
			c.Close()
			break
		}
	}
	return spec, fmt.Sprintf("port %d of the server is localhost:%d here", port, spec.Listen.Port)
}
