package reach

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// systemResolvers is the file in which Go looks for the DNS servers of this machine.
const systemResolvers = "/etc/resolv.conf"

// newResolver returns what resolves names. Android has no file with DNS servers: there Termux has one, below $PREFIX.
func newResolver() *net.Resolver {
	if _, err := os.Stat(systemResolvers); !errors.Is(err, fs.ErrNotExist) {
		return net.DefaultResolver
	}
	f, err := os.Open(filepath.Join(os.Getenv("PREFIX"), systemResolvers))
	if err != nil {
		return net.DefaultResolver
	}
	defer f.Close()
	return resolverWith(nameServers(f))
}

func nameServers(file io.Reader) (servers []string) {
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "nameserver" {
			servers = append(servers, net.JoinHostPort(fields[1], "53"))
		}
	}
	return servers
}

// resolverWith returns a resolver that asks the given DNS servers in turn.
func resolverWith(servers []string) *net.Resolver {
	if len(servers) == 0 {
		return net.DefaultResolver
	}
	var next atomic.Uint32
	return &net.Resolver{
		PreferGo: true,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			server := servers[int(next.Add(1)-1)%len(servers)]
			return new(net.Dialer).DialContext(ctx, network, server)
		},
	}
}
