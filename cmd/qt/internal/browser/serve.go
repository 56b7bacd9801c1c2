// Package browser serves the page to a browser of this machine, and is what leads it to a host: it has ssh log in, and relays
// what the page sends to the host's daemon, sealed between the two.
package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/client/bootstrap"
	"github.com/quicterm/quicterm/quicterm/client/install"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/web"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// tokenTime is how old a token may be when the page gets it, which uses it at once. The daemon accepts it for a minute.
const tokenTime = 45 * time.Second

// directTime is how long a daemon has to answer by TCP before ssh leads to it: TCP has sent its first packet twice by then,
// and the page waits for 5 s.
const directTime = 1500 * time.Millisecond

// failure is the exit status of an ssh that could not log in.
const failure = 255

// A server serves the page, for sessions on one host.
type server struct {
	host, session string
	opts          *reach.Options

	mu    sync.Mutex // of the user's terminal too
	login *login

	bySSH   atomic.Bool // what has led to the daemon last
	unheard atomic.Bool // nothing has, and the user was told
}

// A login is a grant for the page.
type login struct {
	*wire.Grant
	key     ssh.PublicKey
	address string // of the daemon
	port    uint16 // of the daemon on its machine; 0 if ssh is not to lead there
	at      time.Time
}

// Serve serves the page until a signal ends it.
func Serve(ctx context.Context, host, session string, opts *reach.Options) error {
	if !web.Made() {
		reach.Say("this qt was built without the page, and the browser will only say so: in its source, run make build")
	}
	s := &server{host: host, session: session, opts: opts}
	if err := s.logIn(ctx); err != nil { // now: ssh may ask for something
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	relay := web.NewRelay(listener)
	file, remove, err := redirectTo(relay.Link())
	if err != nil {
		listener.Close()
		return err
	}
	defer remove()
	relay.Answer = func(ctx context.Context) (web.Answer, error) {
		remove()
		return s.answer(ctx)
	}
	relay.Dial = s.dial
	ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	if openInBrowser(file) {
		reach.Say("a browser opens the page, or open file://%s; Ctrl-C here ends the page, and no session", file)
	} else {
		reach.Say("open file://%s in a browser; Ctrl-C here ends the page, and no session", file)
	}
	return relay.Serve(ctx)
}

// answer returns what the page is to attach to, with a token that it has not had.
func (s *server) answer(ctx context.Context) (web.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.login.at) > tokenTime {
		if err := s.logIn(ctx); err != nil {
			reach.Complain(err)
			return web.Answer{}, err
		}
	}
	s.login.at = time.Time{} // a token is good once
	return web.Answer{
		Token: base64.RawURLEncoding.EncodeToString(s.login.Token), Key: ssh.FingerprintSHA256(s.login.key),
		Host: s.host, Session: s.session,
	}, nil
}

// logIn gets a grant of the daemon on the host, or of this machine.
func (s *server) logIn(ctx context.Context) error {
	l := new(login)
	local, err := reach.IsLocal(s.host, s.opts)
	if err != nil {
		return err
	}
	if local {
		l.Grant, err = bootstrap.RunGrant(ctx)
	} else {
		err = reach.RunAt(ctx, s.host, s.opts, true, bootstrap.TokenCommand, func(p *install.Process) (err error) {
			l.Grant, err = bootstrap.ReadToken(s.host, p)
			return loginError(p, err)
		})
	}
	if err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(l.Address)
	if err != nil {
		return fmt.Errorf("%s: %w", s.host, err)
	}
	if l.key, err = ssh.ParsePublicKey(l.HostKey); err != nil {
		return fmt.Errorf("%s: %w", s.host, err)
	}
	l.at, l.address = time.Now(), at.String()
	if l.Warning != "" {
		reach.Say("%s: %s", s.host, l.Warning)
	}
	if !local {
		config, err := reach.LoadSSH(ctx, s.host, s.opts)
		if err != nil {
			return err
		}
		port := s.opts.Port
		if port == 0 {
			l.port, port = at.Port(), at.Port()
		}
		l.address = net.JoinHostPort(config.Hostname, strconv.Itoa(int(port)))
	}
	s.login = l
	return nil
}

// loginError returns the error of reading what an ssh process prints, or that this could not log in.
func loginError(p *install.Process, err error) error {
	if err != nil && p.ExitStatus() == failure {
		return install.ErrLogin
	}
	return err
}

// dial connects to the daemon: by TCP or, where that does not get through, by a login of ssh, which asks nothing.
func (s *server) dial(ctx context.Context, use func(io.ReadWriteCloser)) {
	s.mu.Lock()
	address, port := s.login.address, s.login.port
	s.mu.Unlock()
	connected := false
	connect := func(bySSH bool, c io.ReadWriteCloser) {
		connected = true
		s.bySSH.Store(bySSH)
		s.unheard.Store(false)
		use(c)
	}
	var direct error
	if !s.bySSH.Load() {
		var c net.Conn
		dialer := &net.Dialer{}
		if port != 0 {
			dialer.Timeout = directTime
		}
		if c, direct = dialer.DialContext(ctx, "tcp", address); direct == nil {
			defer c.Close()
			connect(false, c)
			return
		}
	}
	var err error
	if port != 0 {
		err = reach.RunAt(ctx, s.host, s.opts, false, bootstrap.RelayCommand(port), func(p *install.Process) error {
			r := bufio.NewReader(p)
			if err := bootstrap.AwaitRelay(s.host, r); err != nil {
				return loginError(p, err)
			}
			connect(true, relayed{r, p})
			return nil
		})
	}
	if connected || ctx.Err() != nil {
		return
	}
	s.bySSH.Store(false)
	if !s.unheard.Swap(true) { // the page tries again and again
		reach.Complain(fmt.Errorf("the page does not reach %s: %w", s.host, errors.Join(direct, err)))
	}
}

// A relayed connection is an ssh process, with what is read of its output already.
type relayed struct {
	*bufio.Reader
	*install.Process
}

func (r relayed) Read(b []byte) (int, error) { return r.Reader.Read(b) }

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
