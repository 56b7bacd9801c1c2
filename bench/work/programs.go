//go:build linux

package work

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/quicterm/quicterm/bench/barestream"
	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// Programs are what sessions, and works, run of this program, by its first argument.
var Programs = map[string]func(args []string) error{
	"echo":       func([]string) error { return echo(os.Stdin, os.Stdout) },
	"barestream": func([]string) error { return barestream.Serve(os.Stdout) },
	"flood": func(args []string) error {
		var rate int
		if err := scan(args, &rate); err != nil {
			return err
		}
		return flood(os.Stdout, rate)
	},
	"attacker": func(args []string) error {
		var a attacker
		var server, session, identity string
		err := scan(args, &a.What, &server, &a.Sources, &a.Connections, &a.Sockets, &a.Rate, &a.uid, &a.user, &session,
			&identity, &a.dir)
		if err != nil {
			return err
		}
		if a.server, err = netip.ParseAddrPort(server); err != nil {
			return err
		}
		if a.key, err = auth.IdentityFile(identity, nil); err != nil {
			return err
		}
		if a.Rate > 0 {
			if a.session, err = wire.ParseSessionID(session); err != nil {
				return err
			}
		}
		return a.run(os.Stdin, os.Stdout)
	},
	"watchers": func(args []string) error {
		var addr, dir string
		var n int
		if err := scan(args, &addr, &dir, &n); err != nil {
			return err
		}
		return watch(os.Stdin, os.Stdout, addr, dir, n)
	},
	"output": func(args []string) error {
		var w Output
		if err := scan(args, &w.Lasts, &w.Rate); err != nil {
			return err
		}
		return w.output(os.Stdin, os.Stdout)
	},
}

// scan reads words and numbers from arguments.
func scan(args []string, to ...any) error {
	_, err := fmt.Sscan(strings.Join(args, " "), to...)
	return err
}
