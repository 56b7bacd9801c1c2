//go:build linux

package work

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/quicterm/quicterm/bench/barestream"
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
	"silent": func(args []string) error {
		var server string
		var sources, connections int
		if err := scan(args, &server, &sources, &connections); err != nil {
			return err
		}
		addr, err := netip.ParseAddrPort(server)
		if err != nil {
			return err
		}
		return silent(os.Stdout, addr, sources, connections)
	},
	"output": func(args []string) error {
		var w Output
		if err := scan(args, &w.Lasts, &w.Rate); err != nil {
			return err
		}
		return w.output(os.Stdin, os.Stdout)
	},
}

// scan reads numbers from arguments.
func scan(args []string, to ...any) error {
	_, err := fmt.Sscan(strings.Join(args, " "), to...)
	return err
}
