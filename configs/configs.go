// Package configs has the settings of the client and the server: their meaning,
// defaults and limits, and how they are read from TOML files.
//
// A key that is left out has its default. A key that does not exist and a value of
// the wrong form are errors that name the file, the line and the key; one that is
// out of range names the file and the key. Sizes and durations have units: "64MiB", "1h30m".
package configs

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// The sample files name every key with its default.
var (
	//go:embed qt.toml
	SampleClient string
	//go:embed qtd.toml
	SampleServer string
)

// DefaultPort is the UDP port of a daemon.
const DefaultPort = 4433

// Client has the settings of qt.
type Client struct {
	// Port is the daemon's UDP port.
	Port uint16 `toml:"port"`
	// KeepaliveInterval is the time between packets that keep a path open, and
	// show whether it is, while there was traffic within the last minute.
	KeepaliveInterval Duration `toml:"keepalive_interval"`
	// KeepaliveIdle is the same when there was none: below the 30 s after
	// which many NATs forget, and long enough for a radio to sleep.
	KeepaliveIdle Duration `toml:"keepalive_idle"`
	// KeepaliveTimeoutMultiplier is how many keepalive intervals a server may
	// be silent before it is sought anew, with nothing typed.
	KeepaliveTimeoutMultiplier int `toml:"keepalive_timeout_multiplier"`
	// ReorderWindow is how many frames may come out of order.
	ReorderWindow int `toml:"reorder_window"`
	// ReconnectBackoff are the waits between attempts to reach a server that
	// does not answer; the last is repeated.
	ReconnectBackoff []Duration `toml:"reconnect_backoff"`
	// Paths says how many paths a session has at once: "failover" (one, which
	// is replaced when it fails), "standby" (a second one over another
	// interface, kept open) or "redundant" (all is sent over both).
	Paths string `toml:"paths"`
	// Compression says when what travels in bulk is compressed, both ways:
	// "off", "on" (whenever that makes it shorter) or "auto" (where the path is
	// slower than compression would be).
	Compression string `toml:"compression"`
	// Interfaces says which network interfaces are better and worse.
	Interfaces Interfaces `toml:"interfaces"`
	// EscapeChar begins an escape at the start of a line: a character, or
	// "none".
	EscapeChar string `toml:"escape_char"`
	// IdentityFiles are private keys to offer. Empty for those that ssh would.
	IdentityFiles []string `toml:"identity_files"`
	// KnownHostsFiles are where hosts are looked up; those that the person
	// accepts go into the first. Empty for those that ssh uses.
	KnownHostsFiles []string `toml:"known_hosts_files"`
	// SendEnv are patterns of environment variables to offer to servers.
	SendEnv []string `toml:"send_env"`
}

// Interfaces are patterns of names of network interfaces; * stands for anything.
type Interfaces struct {
	// Prefer has the best first, before those that the system would choose.
	Prefer []string `toml:"prefer"`
	// Avoid has those that are used only where no other works: they may cost
	// money.
	Avoid []string `toml:"avoid"`
}

// Server has the settings of qtd.
type Server struct {
	// Listen are the UDP addresses to serve. One without a host is served on
	// IPv4 and IPv6.
	Listen []string `toml:"listen"`
	// HostKey are private key files that show who this host is. Empty for
	// the ssh host keys if run by root, else for a key of our own.
	HostKey []string `toml:"host_key"`
	// AuthorizedKeysFiles are where an account's keys are looked up; %h is its
	// home, %u its name, %% a percent sign.
	AuthorizedKeysFiles []string `toml:"authorized_keys_files"`
	// BufferSize is how much output a session keeps for a client that is away.
	BufferSize Size `toml:"buffer_size"`
	// DetachedTTL is how long a session lives without a client; 0 keeps it.
	DetachedTTL Duration `toml:"detached_ttl"`
	// ExitedTTL is how long the end of a session waits to be seen.
	ExitedTTL Duration `toml:"exited_ttl"`
	// PipeTTL is how long a command without a terminal waits for its client.
	PipeTTL Duration `toml:"pipe_ttl"`
	// AcceptEnv are patterns of environment variables that clients may set.
	AcceptEnv []string `toml:"accept_env"`
	// MaxSessionsPerUser is how many sessions an account may have.
	MaxSessionsPerUser int `toml:"max_sessions_per_user"`
	// MaxBufferTotal is how much memory the output of all sessions may take
	// before new ones are refused; 0 for no limit.
	MaxBufferTotal Size `toml:"max_buffer_total"`
	// MaxUnauthenticated is how many clients may be on their way in at once.
	MaxUnauthenticated int `toml:"max_unauthenticated"`
	// AuthTimeout is how long they may take: somebody may have to find a key
	// to touch, or type a passphrase.
	AuthTimeout Duration `toml:"auth_timeout"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `toml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `toml:"log_format"`
	// RuntimeDir stands for /run/quicterm, and for /tmp where that is not ours.
	RuntimeDir string `toml:"runtime_dir"`
	// StateDir has keys that must outlive a daemon.
	StateDir string `toml:"state_dir"`
}

// DefaultClient returns the settings of a client without a file.
func DefaultClient() *Client {
	return &Client{
		Port:                       DefaultPort,
		KeepaliveInterval:          Duration{5 * time.Second},
		KeepaliveIdle:              Duration{25 * time.Second},
		KeepaliveTimeoutMultiplier: 3,
		ReorderWindow:              100,
		ReconnectBackoff: []Duration{
			Duration{250 * time.Millisecond}, Duration{500 * time.Millisecond},
			Duration{time.Second}, Duration{2 * time.Second},
		},
		Paths:       "failover",
		Compression: "auto",
		EscapeChar:  "~",
		SendEnv:     []string{"TERM", "COLORTERM", "LANG", "LC_*"},
	}
}

// DefaultServer returns the settings of a server without a file.
func DefaultServer() *Server {
	return &Server{
		Listen:              []string{":" + strconv.Itoa(DefaultPort)},
		AuthorizedKeysFiles: []string{"%h/.ssh/authorized_keys"},
		BufferSize:          Size{64 << 20},
		ExitedTTL:           Duration{24 * time.Hour},
		PipeTTL:             Duration{time.Hour},
		AcceptEnv:           []string{"TERM", "COLORTERM", "LANG", "LC_*"},
		MaxSessionsPerUser:  100,
		MaxUnauthenticated:  64,
		AuthTimeout:         Duration{2 * time.Minute},
		LogLevel:            "info",
		LogFormat:           "text",
	}
}

// ClientFile returns where qt's settings are, if there are any.
func ClientFile() (string, error) { return userFile("qt.toml") }

// ServerFile returns where qtd's settings are, if there are any.
func ServerFile() (string, error) {
	if os.Geteuid() == 0 {
		return "/etc/quicterm/qtd.toml", nil
	}
	return userFile("qtd.toml")
}

func userFile(name string) (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "quicterm", name), nil
}

// LoadClient reads a file of client settings. With an empty name it reads the
// usual one, if that exists.
func LoadClient(file string) (*Client, error) {
	c := DefaultClient()
	return c, load(file, ClientFile, c, c.check)
}

// LoadServer reads a file of server settings. With an empty name it reads the
// usual one, if that exists.
func LoadServer(file string) (*Server, error) {
	s := DefaultServer()
	return s, load(file, ServerFile, s, s.check)
}

func load(file string, usual func() (string, error), into any, check func() error) error {
	optional := file == ""
	if optional {
		var err error
		if file, err = usual(); err != nil {
			return err
		}
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && optional {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if err := decode(string(content), into); err != nil {
		return fmt.Errorf("%s%w", file, err)
	}
	if err := check(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// decode decodes TOML strictly. Its errors go behind a file's name: where the
// parser tells, they begin with a line and a column.
func decode(content string, into any) error {
	err := toml.NewDecoder(strings.NewReader(content)).DisallowUnknownFields().Decode(into)
	var missing *toml.StrictMissingError
	if errors.As(err, &missing) {
		first := missing.Errors[0]
		line, column := first.Position()
		return fmt.Errorf(":%d:%d: there is no setting %q", line, column, strings.Join(first.Key(), "."))
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, column := bad.Position()
		if key := strings.Join(bad.Key(), "."); key != "" {
			return fmt.Errorf(":%d:%d: %s: %w", line, column, key, err)
		}
		return fmt.Errorf(":%d:%d: %w", line, column, err)
	}
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// maxKeepalive is well below the 90 s of silence after which QUIC gives a
// connection up.
const maxKeepalive = time.Minute

func (c *Client) check() error {
	if err := first(
		within("keepalive_interval", c.KeepaliveInterval.Duration, time.Second, maxKeepalive),
		within("keepalive_idle", c.KeepaliveIdle.Duration, c.KeepaliveInterval.Duration, maxKeepalive),
		within("keepalive_timeout_multiplier", c.KeepaliveTimeoutMultiplier, 2, 20),
		within("reorder_window", c.ReorderWindow, 1, 10_000),
		atLeast("port", c.Port, 1),
		atLeast("number of waits in reconnect_backoff", len(c.ReconnectBackoff), 1),
	); err != nil {
		return err
	}
	if err := first(
		oneOf("paths", c.Paths, "failover", "standby", "redundant"),
		oneOf("compression", c.Compression, "auto", "on", "off"),
	); err != nil {
		return err
	}
	for _, pattern := range slices.Concat(c.Interfaces.Prefer, c.Interfaces.Avoid) {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("interfaces has %q: it is no pattern of a name, such as wlan*", pattern)
		}
	}
	for _, d := range c.ReconnectBackoff {
		if err := atLeast("reconnect_backoff", d.Duration, 100*time.Millisecond); err != nil {
			return err
		}
	}
	if c.EscapeChar != "none" && (len(c.EscapeChar) != 1 || c.EscapeChar[0] <= ' ' || c.EscapeChar[0] > '~') {
		return fmt.Errorf("escape_char is %q: it must be one visible ASCII character, or none", c.EscapeChar)
	}
	return nil
}

func (s *Server) check() error {
	return first(
		atLeast("number of addresses in listen", len(s.Listen), 1),
		within("buffer_size", s.BufferSize.Bytes, MinBuffer, MaxBuffer),
		atLeast("detached_ttl", s.DetachedTTL.Duration, 0),
		atLeast("exited_ttl", s.ExitedTTL.Duration, time.Second),
		atLeast("pipe_ttl", s.PipeTTL.Duration, time.Second),
		within("max_sessions_per_user", s.MaxSessionsPerUser, 1, 10_000),
		within("max_unauthenticated", s.MaxUnauthenticated, 1, 10_000),
		atLeast("auth_timeout", s.AuthTimeout.Duration, time.Second),
		oneOf("log_level", s.LogLevel, "debug", "info", "warn", "error"),
		oneOf("log_format", s.LogFormat, "text", "json"),
	)
}

// Limits of buffer_size.
const (
	MinBuffer Bytes = 512 << 10
	MaxBuffer Bytes = 4 << 30
)

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

type number interface {
	~int | ~int64 | ~uint16
}

func atLeast[T number](key string, v, least T) error {
	if v < least {
		return fmt.Errorf("%s is %v: it must be at least %v", key, v, least)
	}
	return nil
}

func within[T number](key string, v, least, most T) error {
	if v < least || v > most {
		return fmt.Errorf("%s is %v: it must be from %v to %v", key, v, least, most)
	}
	return nil
}

func oneOf(key, v string, allowed ...string) error {
	if !slices.Contains(allowed, v) {
		return fmt.Errorf("%s is %q: it must be one of %s", key, v, strings.Join(allowed, ", "))
	}
	return nil
}
