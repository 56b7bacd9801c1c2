//go:build linux || darwin

package quicterm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A client runs a command in a new session, as a pipe.
func Example_client() {
	grant, stop := serve()
	defer stop()
	c := client.New(client.Config{
		Log: slog.New(slog.DiscardHandler),
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

	ctx := context.Background()
	var output bytes.Buffer
	s, err := c.Attach(ctx, &wire.Attach{Command: "tr a-z A-Z; exit 3"}, client.Streams{Stdout: &output})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(s, "hello") // the command's input
	s.CloseWrite()
	status, err := s.Run(ctx) // stays connected until the command ends
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%sexit status %d\n", output.String(), status)
	// Output:
	// HELLO
	// exit status 3
}
