//go:build linux || darwin

package quicterm_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/server"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A server for one account, on the loopback interface. It gives programs of that account
// a grant: its address, its host key and a one-time token.
func Example_server() {
	grant, stop := serve()
	fmt.Println("host key of", len(grant.HostKey), "bytes, token of", len(grant.Token), "bytes")
	stop()
	// Output:
	// host key of 51 bytes, token of 32 bytes
}

// serve runs a server until stop is called.
func serve() (grant *wire.Grant, stop func()) {
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(server.Config{
		Settings: &configs.Server{RuntimeDir: dir, StateDir: dir}, // sockets and keys
		Granted:  true,                                            // this account only, on the loopback interface
	})
	if err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	ready, stopped := make(chan struct{}), make(chan error)
	go func() { stopped <- s.ListenAndServe(ctx, func() { close(ready) }) }()
	<-ready
	grant, err = bootstrap.Ask(dir, func() error { return errors.New("the server does not run") })
	if err != nil {
		log.Fatal(err)
	}
	return grant, func() {
		cancel()
		if err := <-stopped; err != nil {
			log.Fatal(err)
		}
		os.RemoveAll(dir)
	}
}
