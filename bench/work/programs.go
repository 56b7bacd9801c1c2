//go:build linux

package work

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/coder/websocket"

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
	"random": func(args []string) error {
		var n int64
		if err := scan(args, &n); err != nil {
			return err
		}
		_, err := io.Copy(os.Stdout, randomBytes(n))
		return err
	},
	"web": func(args []string) error { return web(args[0]) },
	"hmr": func(args []string) error {
		updates := func(c net.Conn) (func(int) error, error) { return updates(c, args[1]), nil }
		return overWebSocket(args[0], args[2], websocket.MessageText, updates, "vite-hmr")
	},
	"vscode": func(args []string) error {
		return overWebSocket(args[0]+vscodeQuery, args[1], websocket.MessageBinary, environments)
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
