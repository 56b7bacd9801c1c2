package tcp

import (
	"net"
	"time"
)

// EndIfSilent ends the connection when the peer's system has acknowledged nothing for about d,
// whether there is something to acknowledge or not. Zero ends that, and begins so. It is not
// exact, and does nothing for a connection that is no TCP socket.
func (c *Conn) EndIfSilent(d time.Duration) {
	if c.raw == nil {
		return
	}
	const probes = 3
	interval := d / (probes + 1)
	c.tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: d > 0, Idle: interval, Interval: interval, Count: probes})
	setUserTimeout(c.raw, d)
}
