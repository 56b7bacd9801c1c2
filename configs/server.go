package configs

import (
	"cmp"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Server has the settings of qtd.
type Server struct {
	// Listen are the addresses to serve over UDP and TCP. An address without a host means all
	// IPv4 and IPv6 addresses of this host.
	Listen []string `toml:"listen"`
	// HostKey are the private keys of this host. If empty, root uses the ssh host keys, and another user a key that
	// the daemon makes. Certificates of ssh are taken from beside them, as KEY-cert.pub.
	HostKey []string `toml:"host_key"`
	// AuthorizedKeysFiles have the public keys of an account; %h is its home, %u its name, %% a percent sign.
	AuthorizedKeysFiles []string `toml:"authorized_keys_files"`
	// TrustedUserCAKeys is a file with the authorities whose certificates let users in.
	TrustedUserCAKeys string `toml:"trusted_user_ca_keys"`
	// AllowUsers and AllowGroups are patterns of the accounts that get in.
	AllowUsers  []string `toml:"allow_users"`
	AllowGroups []string `toml:"allow_groups"`
	// SSHDPolicy says whether root's daemon lets in whom the sshd of this machine lets in: follow or ignore.
	SSHDPolicy string `toml:"sshd_policy"`
	// BufferSize bounds the output that a session keeps until the client has it.
	BufferSize Size `toml:"buffer_size"`
	// DetachedTTL is how long a session lives without a client; 0 is for ever.
	DetachedTTL Duration `toml:"detached_ttl"`
	// Persist is what a session on a terminal keeps on disk, for when its process or the machine
	// is gone: "off" or "screen" (the screen with its scrollback).
	Persist string `toml:"persist"`
	// PersistDir is the directory for that, in the rights of the account; %h is its home, %u its
	// name, %% a percent sign.
	PersistDir string `toml:"persist_dir"`
	// AcceptEnv are patterns of environment variables that clients may set.
	AcceptEnv []string `toml:"accept_env"`
	// Grants is whether processes of this machine can ask the daemon for a token to
	// log in to their own account: "on" or "off".
	Grants string `toml:"grants"`
	// MaxSessionsPerUser bounds the sessions of an account whose programs run.
	MaxSessionsPerUser int `toml:"max_sessions_per_user"`
	// MaxBufferTotal bounds the memory that all sessions use for output: above it, accounts
	// that use more than their part of it get no new sessions. A percentage is of the
	// memory that the daemon may use: the machine's or the container's.
	MaxBufferTotal Share `toml:"max_buffer_total"`
	// MaxUnauthenticated bounds the connections that have not logged in yet.
	MaxUnauthenticated int `toml:"max_unauthenticated"`
	// AuthTimeout bounds the time of a login: a user may have to touch a key or type a passphrase.
	AuthTimeout Duration `toml:"auth_timeout"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `toml:"log_level"`
	// Metrics is the address at which /metrics and /healthz are served over HTTP: a loopback
	// address with a port, or unix: and the path of a socket. If empty, they are not.
	Metrics string `toml:"metrics"`
	// Web is the address at which the page is served, with clients over its WebSocket: "off", a loopback address with a
	// port, behind a proxy that has the certificate, or any address with WebCertificate and WebKey.
	Web string `toml:"web"`
	// WebCertificate and WebKey are files, PEM: a chain of certificates, the page's first, and its private key.
	WebCertificate string `toml:"web_certificate"`
	WebKey         string `toml:"web_key"`
	// WebProxy are addresses and networks of proxies, whose X-Forwarded-For tells where a client is.
	WebProxy []string `toml:"web_proxy"`
	// RuntimeDir is the directory of sockets. If empty, it is /run/quicterm of root's daemon, or a directory in /tmp.
	RuntimeDir string `toml:"runtime_dir"`
	// StateDir is the directory of keys that outlive a daemon. If empty, it is
	// /var/lib/quicterm for root, otherwise $XDG_STATE_HOME/quicterm.
	StateDir string `toml:"state_dir"`
}

// DefaultServer returns the default settings of qtd.
func DefaultServer() *Server {
	return &Server{
		Listen:              []string{":" + strconv.Itoa(DefaultPort)},
		AuthorizedKeysFiles: []string{"%h/.ssh/authorized_keys"},
		SSHDPolicy:          "follow",
		BufferSize:          Size{64 << 20},
		Persist:             "off",
		PersistDir:          "%h/.local/state/quicterm/sessions",
		AcceptEnv:           []string{"TERM", "COLORTERM", "LANG", "LC_*"},
		Grants:              "on",
		MaxSessionsPerUser:  100,
		MaxBufferTotal:      Share{Percent: 25},
		MaxUnauthenticated:  256,
		AuthTimeout:         Duration{2 * time.Minute},
		LogLevel:            "info",
		Web:                 "off",
	}
}

// WithDefaults returns a copy of the settings in which no value means the default. s may be nil.
func (s *Server) WithDefaults() *Server {
	d := DefaultServer()
	if s == nil {
		return d
	}
	c := *s
	v, preset := reflect.ValueOf(&c).Elem(), reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		if meansDefault(v.Field(i)) {
			v.Field(i).Set(preset.Field(i))
		}
	}
	return &c
}

// meansDefault reports whether a value is a zero or negative number, an empty name, a nil list, or made of such.
func meansDefault(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return v.Int() <= 0
	case reflect.Struct:
		for i := range v.NumField() {
			if !meansDefault(v.Field(i)) {
				return false
			}
		}
		return true
	}
	return v.IsZero()
}

// ServerFile returns the path of qtd's settings file, which need not exist.
func ServerFile() (string, error) {
	if os.Geteuid() == 0 {
		return "/etc/quicterm/qtd.toml", nil
	}
	return userFile("qtd.toml")
}

// LoadServer reads a file of server settings. With an empty name it reads ServerFile, if
// that exists. Further checks may return a [Wrong].
func LoadServer(file string, checks ...func(*Server) error) (*Server, error) {
	s := DefaultServer()
	return s, load(file, ServerFile, s, append([]func(*Server) error{(*Server).check}, checks...)...)
}

// The limits of buffer_size.
const (
	MinBuffer Bytes = 512 << 10
	MaxBuffer Bytes = 4 << 30
)

func (s *Server) check() error {
	return cmp.Or(
		notEmpty("listen", s.Listen),
		checkListen(s.Listen),
		within("buffer_size", s.BufferSize.Bytes, MinBuffer, MaxBuffer),
		atLeast("detached_ttl", s.DetachedTTL.Duration, 0),
		within("max_sessions_per_user", s.MaxSessionsPerUser, 1, 2000),
		atLeast("max_buffer_total", s.MaxBufferTotal.Of(100), 1),
		within("max_unauthenticated", s.MaxUnauthenticated, 1, 10_000),
		atLeast("auth_timeout", s.AuthTimeout.Duration, time.Second),
		absolute("trusted_user_ca_keys", s.TrustedUserCAKeys),
		oneOf("sshd_policy", s.SSHDPolicy, "follow", "ignore"),
		oneOf("persist", s.Persist, "off", "screen"),
		absolute("persist_dir", strings.TrimPrefix(s.PersistDir, "%h")),
		patterns("accept_env", s.AcceptEnv),
		oneOf("grants", s.Grants, "on", "off"),
		oneOf("log_level", s.LogLevel, "debug", "info", "warn", "error"),
		checkMetrics(s.Metrics),
		absolute("web_certificate", s.WebCertificate),
		absolute("web_key", s.WebKey),
		s.checkWeb(),
		s.checkWebProxy(),
		absolute("runtime_dir", s.RuntimeDir),
		absolute("state_dir", s.StateDir),
	)
}

// checkListen checks addresses to listen on, as far as that can be told without looking names up.
func checkListen(addresses []string) error {
	for i, address := range addresses {
		_, port, err := net.SplitHostPort(address)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return element(i, wrongf("listen",
				"listen has %q: it must be an address with a port, such as :4433 or 192.0.2.1:4433", address))
		}
	}
	return nil
}

// UnixPrefix is what the setting metrics begins with if it names a unix socket.
const UnixPrefix = "unix:"

// checkMetrics checks where metrics are served: there is no login and no encryption.
func checkMetrics(address string) error {
	if path, ok := strings.CutPrefix(address, UnixPrefix); address == "" || ok && filepath.IsAbs(path) {
		return nil
	}
	if a, err := netip.ParseAddrPort(address); err == nil && a.Addr().IsLoopback() && a.Port() != 0 {
		return nil
	}
	return wrongf("metrics", "metrics is %q: it must be a loopback address with a port, such as 127.0.0.1:9443, "+
		"or unix: and an absolute path, because there is no login and no encryption", address)
}

// checkWeb checks where the page is served. Without a certificate, others could change what it does on its way.
func (s *Server) checkWeb() error {
	host, port, err := net.SplitHostPort(s.Web)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	ip, notIP := netip.ParseAddr(host)
	switch {
	case (s.WebCertificate == "") != (s.WebKey == ""):
		return wrongf("web_certificate", "web_certificate and web_key belong together: set both or none")
	case s.Web == "off":
		return nil
	case err != nil || host != "" && notIP != nil || port == "0":
		return wrongf("web", `web is %q: it must be "off", or an address with a port, such as 127.0.0.1:8080 or :443`, s.Web)
	case s.WebCertificate == "" && !ip.IsLoopback():
		return wrongf("web", "web is %q: without web_certificate and web_key it must be a loopback address with a port, "+
			"such as 127.0.0.1:8080, for a proxy on this machine that has a certificate", s.Web)
	}
	return nil
}

func (s *Server) checkWebProxy() error {
	_, err := s.WebProxies()
	return err
}

// WebProxies returns the networks of WebProxy.
func (s *Server) WebProxies() (networks []netip.Prefix, err error) {
	for i, text := range s.WebProxy {
		network, err := netip.ParsePrefix(text)
		if ip, notIP := netip.ParseAddr(text); notIP == nil {
			network, err = ip.Unmap().Prefix(ip.Unmap().BitLen())
		}
		if err != nil {
			return nil, element(i, wrongf("web_proxy",
				"web_proxy has %q: it must be an address or a network, such as 127.0.0.1 or 192.0.2.0/24", text))
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// absolute checks the path of a file or directory: a relative one would depend on where qtd is
// started. Empty means the default.
func absolute(key, dir string) error {
	if dir != "" && !filepath.IsAbs(dir) {
		return wrongf(key, "%s is %q: it must begin with /", key, dir)
	}
	return nil
}
