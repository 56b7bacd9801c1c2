package configs

import (
	"errors"
	"slices"
	"time"
)

// Client has the settings of qt.
type Client struct {
	// Port is the daemon's port, UDP and TCP.
	Port uint16 `toml:"port"`
	// Bootstrap is how a client reaches a server first: "direct" (at the daemon's port),
	// "ssh" (by ssh, which starts a daemon if none runs), or "auto" (direct where that has
	// worked recently, else by ssh).
	Bootstrap string `toml:"bootstrap"`
	// KeepSSH keeps the ssh connection of a session open beside a better one.
	KeepSSH bool `toml:"keep_ssh"`
	// Proxy is the URL of a proxy for connections by TCP: socks5://host:port or
	// http://host:port, each with user:password@ if it needs that. Empty means none.
	Proxy string `toml:"proxy"`
	// KeepaliveInterval is the time between packets that keep a path open and
	// prove that it works, while there was traffic within the last minute.
	KeepaliveInterval Duration `toml:"keepalive_interval"`
	// KeepaliveIdle is that time without traffic: below the 30 s after which many
	// NATs forget a flow, and long enough for a radio to sleep.
	KeepaliveIdle Duration `toml:"keepalive_idle"`
	// KeepaliveTimeoutMultiplier is the number of keepalive intervals without a
	// packet from the server after which the client gives a path up.
	KeepaliveTimeoutMultiplier int `toml:"keepalive_timeout_multiplier"`
	// ReorderWindow is how many frames of output the reorder window spans, the first
	// missing one included. For input, the server has its own fixed window.
	ReorderWindow int `toml:"reorder_window"`
	// ReconnectBackoff are the waits between attempts to reach a server that does
	// not answer. The last one is repeated.
	ReconnectBackoff []Duration `toml:"reconnect_backoff"`
	// Paths is how many paths a session has: "failover" (one, replaced when it
	// fails), "standby" (a second one over another interface, kept open),
	// "redundant" (everything is sent over both) or "aggregate" (the second one carries
	// what the first has no room for).
	Paths string `toml:"paths"`
	// BulkConnections is over how many connections bulk data is spread where one does not fill
	// the path: a number from "1" to "8", or "auto": up to four, while the path has no queue.
	// The number counts the first connection. Only over QUIC, and not with Paths "redundant".
	BulkConnections string `toml:"bulk_connections"`
	// Compression is when bulk data is compressed, in both directions: "off", "on"
	// (if that makes it shorter) or "auto" (if the path is slower than compression).
	Compression string `toml:"compression"`
	// Interfaces says which network interfaces to prefer and to avoid.
	Interfaces Interfaces `toml:"interfaces"`
	// Flood is what a terminal's session does with output that is too much for the path:
	// "pace" (the program waits, all is shown) or "skip" (a client that is far behind gets the
	// screen as it is then).
	Flood string `toml:"flood"`
	// Predict is when a terminal shows what typed keys will show before the server answers:
	// "adaptive" (where that takes long), "always" or "never".
	Predict string `toml:"predict"`
	// EscapeChar begins an escape at the start of a line: one character, or "none".
	EscapeChar string `toml:"escape_char"`
	// Record is the directory where sessions on a terminal are recorded. Empty means nowhere.
	Record string `toml:"record"`
	// RecordInput records what is typed in these sessions as well, passwords included.
	RecordInput bool `toml:"record_input"`
	// IdentityFiles are private keys to offer. If empty, ssh's configuration names them.
	IdentityFiles []string `toml:"identity_files"`
	// KnownHostsFiles have the keys of hosts; newly accepted keys go into the first
	// one. If empty, ssh's configuration names them.
	KnownHostsFiles []string `toml:"known_hosts_files"`
	// SendEnv are patterns of environment variables to offer to servers.
	SendEnv []string `toml:"send_env"`
}

// Interfaces are patterns of names of network interfaces; * matches anything.
type Interfaces struct {
	// Prefer are used before the interface that the system would choose, the first one first.
	Prefer []string `toml:"prefer"`
	// Avoid are used only if no other works: they may cost money.
	Avoid []string `toml:"avoid"`
}

// DefaultClient returns the default settings of qt.
func DefaultClient() *Client {
	return &Client{
		Port:                       DefaultPort,
		Bootstrap:                  "auto",
		KeepaliveInterval:          Duration{5 * time.Second},
		KeepaliveIdle:              Duration{25 * time.Second},
		KeepaliveTimeoutMultiplier: 3,
		ReorderWindow:              100,
		ReconnectBackoff: []Duration{
			Duration{250 * time.Millisecond}, Duration{500 * time.Millisecond},
			Duration{time.Second}, Duration{2 * time.Second},
		},
		Paths:           "failover",
		BulkConnections: "auto",
		Compression:     "auto",
		Flood:           "pace",
		Predict:         "adaptive",
		EscapeChar:      "~",
		SendEnv:         []string{"TERM", "COLORTERM", "LANG", "LC_*"},
	}
}

// WithDefaults returns a copy of the settings in which no value means the default. c may be nil.
func (c *Client) WithDefaults() *Client {
	d := DefaultClient()
	if c == nil {
		return d
	}
	s := *c
	setDefault(&s.Port, d.Port)
	setDefault(&s.KeepaliveInterval.Duration, d.KeepaliveInterval.Duration)
	setDefault(&s.KeepaliveIdle.Duration, max(d.KeepaliveIdle.Duration, s.KeepaliveInterval.Duration))
	setDefault(&s.KeepaliveTimeoutMultiplier, d.KeepaliveTimeoutMultiplier)
	setDefault(&s.ReorderWindow, d.ReorderWindow)
	if slices.IndexFunc(s.ReconnectBackoff, func(d Duration) bool { return d.Duration <= 0 }) >= 0 || len(s.ReconnectBackoff) == 0 {
		s.ReconnectBackoff = d.ReconnectBackoff
	}
	if s.Bootstrap == "" {
		s.Bootstrap = d.Bootstrap
	}
	if s.Paths == "" {
		s.Paths = d.Paths
	}
	if s.BulkConnections == "" {
		s.BulkConnections = d.BulkConnections
	}
	if s.Compression == "" {
		s.Compression = d.Compression
	}
	if s.Flood == "" {
		s.Flood = d.Flood
	}
	if s.Predict == "" {
		s.Predict = d.Predict
	}
	if s.EscapeChar == "" {
		s.EscapeChar = d.EscapeChar
	}
	if s.SendEnv == nil {
		s.SendEnv = d.SendEnv
	}
	return &s
}

// ClientFile returns the path of qt's settings file, which need not exist.
func ClientFile() (string, error) { return userFile("qt.toml") }

// LoadClient reads a file of client settings. With an empty name it reads ClientFile, if
// that exists.
func LoadClient(file string) (*Client, error) {
	c := DefaultClient()
	return c, load(file, ClientFile, c, (*Client).check)
}

// maxKeepalive is well below the 90 s of silence after which QUIC gives a connection up.
const maxKeepalive = time.Minute

func (c *Client) check() error {
	if err := first(
		within("keepalive_interval", c.KeepaliveInterval.Duration, time.Second, maxKeepalive),
		within("keepalive_idle", c.KeepaliveIdle.Duration, c.KeepaliveInterval.Duration, maxKeepalive),
		within("keepalive_timeout_multiplier", c.KeepaliveTimeoutMultiplier, 2, 20),
		within("reorder_window", c.ReorderWindow, 1, 10_000),
		atLeast("port", c.Port, 1),
		oneOf("bootstrap", c.Bootstrap, "auto", "ssh", "direct"),
		notEmpty("reconnect_backoff", c.ReconnectBackoff),
		oneOf("paths", c.Paths, "failover", "standby", "redundant", "aggregate"),
		oneOf("bulk_connections", c.BulkConnections, "auto", "1", "2", "3", "4", "5", "6", "7", "8"),
		oneOf("compression", c.Compression, "auto", "on", "off"),
		oneOf("flood", c.Flood, "pace", "skip"),
		oneOf("predict", c.Predict, "adaptive", "always", "never"),
		patterns("interfaces.prefer", c.Interfaces.Prefer),
		patterns("interfaces.avoid", c.Interfaces.Avoid),
		patterns("send_env", c.SendEnv),
	); err != nil {
		return err
	}
	for i, d := range c.ReconnectBackoff {
		if err := atLeast("reconnect_backoff", d.Duration, 100*time.Millisecond); err != nil {
			return element(i, err)
		}
	}
	if err := CheckEscapeChar(c.EscapeChar); err != nil {
		return wrongf("escape_char", "escape_char is %q: %w", c.EscapeChar, err)
	}
	return nil
}

// CheckEscapeChar fails if c cannot be the character that begins an escape.
func CheckEscapeChar(c string) error {
	if c != "none" && (len(c) != 1 || c[0] <= ' ' || c[0] > '~') {
		return errors.New("it must be one visible ASCII character, or none")
	}
	return nil
}
