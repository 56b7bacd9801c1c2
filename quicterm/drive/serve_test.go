//go:build linux

package drive_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/bench/rig"
	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/holder/holdertest"
	"github.com/quicterm/quicterm/quicterm/server"
)

// TestMain makes the program of the examples a holder or a reader of keys if a server starts it as one.
func TestMain(m *testing.M) {
	holdertest.Child()
	if status, ok := rig.WithoutStartupFiles(); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// serve runs a server until stop is called. Each client of login has a token for one login.
func serve() (login func() *client.Client, stop func()) {
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(server.Config{
		Settings: &configs.Server{RuntimeDir: dir, StateDir: dir, LogLevel: "error"}, Granted: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, stopped := make(chan struct{}), make(chan error)
	go func() { stopped <- s.ListenAndServe(ctx, func() { close(ready) }) }()
	<-ready
	login = func() *client.Client {
		grant, err := bootstrap.Ask(dir, func() error { return errors.New("the server does not run") })
		if err != nil {
			log.Fatal(err)
		}
		return client.New(client.Config{
			Resolve: func(context.Context) ([]netip.AddrPort, error) {
				address, err := netip.ParseAddrPort(grant.Address)
				return []netip.AddrPort{address}, err
			},
			CheckHost: func(key ssh.PublicKey) error {
				if !bytes.Equal(key.Marshal(), grant.HostKey) {
					return errors.New("not the host key of the grant")
				}
				return nil
			},
			Token: client.Once(grant.Token),
		})
	}
	return login, func() {
		endSessions(login())
		cancel()
		if err := <-stopped; err != nil {
			log.Fatal(err)
		}
		os.RemoveAll(dir)
	}
}

// endSessions ends all sessions. Who has just left one may be on its way out: a holder waits for a client that may come
// back.
func endSessions(c *client.Client) {
	defer c.Close()
	ctx := context.Background()
	for here := true; here; {
		infos, _, err := c.List(ctx)
		if here = false; err != nil {
			log.Fatal(err)
		}
		for _, i := range infos {
			if here = here || len(i.Members) > 0; !here {
				err = errors.Join(append(c.Kill(ctx, i.Name), err)...)
			}
		}
		if err != nil {
			log.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}
