//go:build linux || darwin

package server

import (
	"context"
	"net"

	"github.com/quicterm/quicterm/quicterm/monitor"
)

// Config configures a [Daemon].
type Config = monitor.Config

// A Daemon is a monitor and a server in one process.
type Daemon struct {
	*monitor.Monitor
	*Server
}

// New returns a daemon with the keys that its settings name. It makes those that do not exist. It starts nothing.
func New(cfg Config) (*Daemon, error) {
	m, err := monitor.New(cfg)
	if err != nil {
		return nil, err
	}
	s, err := NewServer(m.Calls(), m.Setup(), cfg.Log)
	if err != nil {
		return nil, err
	}
	return &Daemon{m, s}, nil
}

// ListenAndServe is [monitor.Monitor.ListenAndServe] with the server of the daemon.
func (d *Daemon) ListenAndServe(ctx context.Context, ready func()) error {
	return d.Monitor.ListenAndServe(ctx, d.Server, ready)
}

// Serve serves clients on the given UDP sockets, which it closes, until ctx ends or a
// socket fails. A granted daemon also stops when it is not used any more.
func (d *Daemon) Serve(ctx context.Context, sockets ...net.PacketConn) error {
	var tasks []func(context.Context) error
	for _, socket := range sockets {
		tasks = append(tasks, func(ctx context.Context) error { return d.ServeQUIC(ctx, socket) })
	}
	return d.Monitor.Run(ctx, d.Server, tasks...)
}

// ServeLocal serves a client of an account, which needs no login, on a connection until that or
// ctx ends. A daemon that serves no unix socket, such as one in memory, has its local clients so.
func (d *Daemon) ServeLocal(ctx context.Context, c net.Conn, uid uint32) error {
	client, err := d.AdmitLocal(ctx, uid)
	if err != nil {
		return err
	}
	d.Server.ServeLocal(ctx, c, client)
	return nil
}
