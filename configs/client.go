package configs

import (
	"cmp"
	"errors"
	"time"
)

// Client has the settings of qt.
type Client struct {
	// Port is the daemon's port, UDP and TCP.
	Port uint16 `toml:"port"`
	// Bootstrap is how a client reaches a server first: "direct" (at the daemon's port), "ssh" (by ssh, which starts
	// a daemon if none runs), or "auto" (direct where that has worked recently, else by ssh).
	Bootstrap string `toml:"bootstrap"`
	// KeepaliveIdle is the time between packets that keep a path open without traffic: below the
	// 30 s after which many NATs forget a flow, and long enough for a radio to sleep.
	KeepaliveIdle Duration `toml:"keepalive_idle"`
	// Paths is how many paths a session has: "failover" (one, replaced when it fails), "standby" (a second one over
	// another interface, kept open), "redundant" (everything is sent over both) or "aggregate" (bulk data goes over
	// both).
	Paths string `toml:"paths"`
	// Compression is when bulk data is compressed, in both directions: "off", "on"
	// (if that makes it shorter) or "auto" (if the path is slower than compression).
	Compression string `toml:"compression"`
	// Interfaces says which network interfaces to prefer and to avoid.
	Interfaces Interfaces `toml:"interfaces"`
	// Flood is what a terminal's session does with output that is too much for the path: "pace" (the program waits,
	// all is shown) or "skip" (a client that is far behind gets the screen as it is then).
	Flood string `toml:"flood"`
	// Predict is when a terminal shows what typed keys will show before the server answers:
	// "adaptive" (where that takes long), "always" or "never".
	Predict string `toml:"predict"`
	// EscapeChar begins an escape at the start of a line: one character, or "none".
	EscapeChar string `toml:"escape_char"`
	// ForwardPorts is what happens when a program of a session listens at a port: "ask" tells the user, who may forward
	// it, and "never" does not.
	ForwardPorts string `toml:"forward_ports"`
	// Record is the directory where sessions on a terminal are recorded. Empty means nowhere.
	Record string `toml:"record"`
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
		Port:          DefaultPort,
		Bootstrap:     "auto",
		KeepaliveIdle: Duration{25 * time.Second},
		Paths:         "failover",
		Compression:   "auto",
		Flood:         "pace",
		Predict:       "adaptive",
		EscapeChar:    "~",
		ForwardPorts:  "ask",
		SendEnv:       []string{"TERM", "COLORTERM", "LANG", "LC_*"},
	}
}

// ClientFile returns the path of qt's settings file, which need not exist.
func ClientFile() (string, error) { return userFile("qt.toml") }

// LoadClient reads a file of client settings. With an empty name it reads ClientFile, if that exists.
func LoadClient(file string) (*Client, error) {
	c := DefaultClient()
	return c, load(file, ClientFile, c, (*Client).check)
}

// maxKeepalive is well below the 90 s of silence after which QUIC gives a connection up.
const maxKeepalive = time.Minute

func (c *Client) check() error {
	if err := cmp.Or(
		within("keepalive_idle", c.KeepaliveIdle.Duration, time.Second, maxKeepalive),
		atLeast("port", c.Port, 1),
		oneOf("bootstrap", c.Bootstrap, "auto", "ssh", "direct"),
		oneOf("paths", c.Paths, "failover", "standby", "redundant", "aggregate"),
		oneOf("compression", c.Compression, "auto", "on", "off"),
		oneOf("flood", c.Flood, "pace", "skip"),
		oneOf("predict", c.Predict, "adaptive", "always", "never"),
		oneOf("forward_ports", c.ForwardPorts, "ask", "never"),
		patterns("interfaces.prefer", c.Interfaces.Prefer),
		patterns("interfaces.avoid", c.Interfaces.Avoid),
		patterns("send_env", c.SendEnv),
	); err != nil {
		return err
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
