package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/install"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/web"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func webCommand() *cobra.Command {
	var opts options
	var code bool
	var page string
	c := &cobra.Command{
		Use:   "web [flags] [[user@]host [session]]",
		Short: "Open a session in a browser of this machine",
		Long: `Serve a page to the browser of this machine, in which it is a client as qt is: it opens a session
on a host, or on this machine if none is given, or attaches to the session that is named. ssh logs
in as it always does, for a token that the page uses up. The page connects to the host's daemon
by TCP through this command, which sees sealed bytes: leave it running. Other accounts of this
machine cannot use the page, as they do not have its link, which is good once.

With --qr, print a link to the page that the host's daemon serves (its setting web), as a QR code too,
and end. The link is good once, for 2 minutes: the browser that opens it can be remembered then, and
needs no link any more. qt devices lists such browsers. Show the code to nobody else.`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			host, rest := splitHost(args)
			if code {
				return printLink(c.Context(), host, strings.Join(rest, ""), page, &opts)
			}
			if page != "" {
				return errors.New("--url is for --qr: qt web serves the page itself")
			}
			return serveWeb(c.Context(), host, strings.Join(rest, ""), &opts)
		},
	}
	addLoginFlags(c, &opts)
	c.Flags().BoolVar(&code, "qr", false, "print a link for another device, and its QR code")
	c.Flags().StringVar(&page, "url", "", "with --qr: `address` of the server's page, if a proxy serves it: https://...")
	complete(c, &opts, hostNames, sessionNames)
	return c
}

// tokenTime is how old a token may be when the page gets it, which uses it at once. The daemon accepts it for a minute.
const tokenTime = 45 * time.Second

// A webLogin is a grant for the page.
type webLogin struct {
	*wire.Grant
	key     ssh.PublicKey
	address string // of the daemon
	at      time.Time
}

// serveWeb serves the page until a signal ends it.
func serveWeb(ctx context.Context, host, session string, opts *options) error {
	if !web.Made() {
		say("this qt was built without the page, and the browser will only say so: in its source, run make build")
	}
	login, err := loginForWeb(ctx, host, opts) // now: ssh may ask for something
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	relay := web.NewRelay(l)
	file, remove, err := redirectTo(relay.Link())
	if err != nil {
		l.Close()
		return err
	}
	defer remove()
	var asking sync.Mutex
	relay.Answer = func(ctx context.Context) (web.Answer, error) {
		asking.Lock()
		defer asking.Unlock()
		remove()
		if time.Since(login.at) > tokenTime {
			again, err := loginForWeb(ctx, host, opts)
			if err != nil {
				complain(err)
				return web.Answer{}, err
			}
			login = again
		}
		defer func() { login.at = time.Time{} }() // a token is good once
		return web.Answer{
			Token: base64.RawURLEncoding.EncodeToString(login.Token), Key: ssh.FingerprintSHA256(login.key),
			Host: host, Session: session,
		}, nil
	}
	address := login.address
	relay.Dial = func(ctx context.Context) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil && ctx.Err() == nil {
			complain(fmt.Errorf("the page does not reach %s: %w", host, err))
		}
		return c, err
	}
	ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	if openInBrowser(file) {
		say("a browser opens the page, or open file://%s; Ctrl-C here ends the page, and no session", file)
	} else {
		say("open file://%s in a browser; Ctrl-C here ends the page, and no session", file)
	}
	return relay.Serve(ctx)
}

// loginForWeb returns a grant of the daemon on a host, or of this machine.
func loginForWeb(ctx context.Context, host string, opts *options) (l *webLogin, err error) {
	l = new(webLogin)
	local, err := reach.IsLocal(host, &opts.Options)
	if err != nil {
		return nil, err
	}
	if local {
		l.Grant, err = bootstrap.RunGrant(ctx)
	} else {
		err = atHost(ctx, host, opts, bootstrap.TokenCommand, func(p *install.Process) (err error) {
			if l.Grant, err = bootstrap.ReadToken(host, p); err != nil && p.ExitStatus() == failure {
				return install.ErrLogin
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(l.Address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", host, err)
	}
	if l.key, err = ssh.ParsePublicKey(l.HostKey); err != nil {
		return nil, fmt.Errorf("%s: %w", host, err)
	}
	l.at, l.address = time.Now(), at.String()
	if l.Warning != "" {
		say("%s: %s", host, l.Warning)
	}
	if !local {
		config, err := reach.LoadSSH(ctx, host, &opts.Options)
		if err != nil {
			return nil, err
		}
		l.address = net.JoinHostPort(config.Hostname, strconv.Itoa(int(at.Port())))
	}
	return l, nil
}

// redirectTo makes a file that only this account can read, and that leads a browser to a link: the arguments of programs
// are visible to all accounts.
func redirectTo(link string) (file string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "qt-web-")
	if err != nil {
		return "", nil, err
	}
	remove = sync.OnceFunc(func() { os.RemoveAll(dir) })
	file = filepath.Join(dir, "open.html")
	page := `<!doctype html><title>quicterm</title><meta http-equiv="refresh" content="0; url=` + link + `">` + "\n"
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return file, remove, nil
}

// openInBrowser opens a file in the user's browser, and reports whether there seems to be one.
func openInBrowser(file string) bool {
	command := []string{"xdg-open", file}
	switch runtime.GOOS {
	case "darwin":
		command[0] = "open"
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", file}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return false // it could be one in this terminal
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	if cmd.Start() != nil {
		return false
	}
	go cmd.Wait()
	return true
}
