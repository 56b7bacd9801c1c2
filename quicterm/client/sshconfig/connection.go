package sshconfig

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Connection is what an ssh connection needs beside keys: for one of our own, where there is
// no ssh program.
type Connection struct {
	Methods      []string      // by which to log in, best first
	Prompts      int           // how often a password is asked for
	Timeout      time.Duration // of connecting; 0 for none
	Jumps        []Jump        // the first is connected to first
	ProxyCommand string        // or empty
	Piped        bool          // ssh itself talks to a proxy by a pipe
	Shared       bool          // ssh shares connections of other ssh processes

	// Undo has the flags of ssh that undo what the configuration says of a login: that ssh does not
	// run a command, does not read, or goes to the background.
	Undo []string

	// Changes of lists of algorithms, for [Algorithms].
	Ciphers, KeyExchanges, MACs string
}

// A Jump is a host through which another one is reached.
type Jump struct {
	Host string
	User string // or empty: the configuration for the host names the user
	Port uint16 // or 0
}

// newConnection returns what values say about connections to a host.
func newConnection(v values, x *expander) (c Connection, err error) {
	c.Methods = strings.Split(v.one("preferredauthentications", "publickey,keyboard-interactive,password"), ",")
	for method, option := range map[string]string{
		"publickey": "pubkeyauthentication", "keyboard-interactive": "kbdinteractiveauthentication", "password": "passwordauthentication",
	} {
		if v.isOff(option) {
			c.Methods = slices.DeleteFunc(c.Methods, func(m string) bool { return m == method })
		}
	}
	if c.Prompts, err = strconv.Atoi(v.one("numberofpasswordprompts", "3")); err != nil {
		return c, fmt.Errorf("NumberOfPasswordPrompts: %w", err)
	}
	if timeout := v.one("connecttimeout", "none"); timeout != "none" {
		if c.Timeout, err = parseTime(timeout); err != nil {
			return c, fmt.Errorf("ConnectTimeout: %w", err)
		}
	}
	if c.ProxyCommand = v.one("proxycommand", "none"); c.ProxyCommand == "none" {
		c.ProxyCommand = ""
	}
	jumps, known := x.replace(v.one("proxyjump", "none"), nil)
	if !known {
		return c, errors.New("ProxyJump has an unknown token")
	}
	if jumps != "none" && c.ProxyCommand == "" {
		for spec := range strings.SplitSeq(jumps, ",") {
			jump, err := parseJump(spec)
			if err != nil {
				return c, err
			}
			c.Jumps = append(c.Jumps, jump)
		}
	}
	c.Piped = (c.ProxyCommand != "" || len(c.Jumps) > 0) && !v.isSet("proxyusefdpass")
	c.Shared = v.one("controlpath", "none") != "none"
	for _, option := range []string{"SessionType=default", "StdinNull=no", "ForkAfterAuthentication=no"} {
		name, usual, _ := strings.Cut(option, "=")
		if v.one(strings.ToLower(name), usual) != usual { // an older ssh does not know it
			c.Undo = append(c.Undo, "-o", option)
		}
	}
	c.Ciphers, c.KeyExchanges, c.MACs = v.one("ciphers", ""), v.one("kexalgorithms", ""), v.one("macs", "")
	return c, nil
}

// parseJump parses [user@]host[:port] or ssh://[user@]host[:port].
func parseJump(spec string) (Jump, error) {
	var j Jump
	rest := strings.TrimPrefix(strings.TrimSpace(spec), "ssh://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		j.User, rest = rest[:i], rest[i+1:]
	}
	port := ""
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		j.Host, port, ok = strings.Cut(inner, "]")
		if !ok {
			return j, fmt.Errorf("ProxyJump: %q is not a host", spec)
		}
	} else if strings.Count(rest, ":") == 1 {
		i := strings.IndexByte(rest, ':')
		j.Host, port = rest[:i], rest[i:]
	} else {
		j.Host = rest
	}
	if port, ok := strings.CutPrefix(port, ":"); ok {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return j, fmt.Errorf("ProxyJump: %q has no valid port", spec)
		}
		j.Port = uint16(n)
	}
	if j.Host == "" || strings.HasPrefix(j.Host, "-") {
		return j, fmt.Errorf("ProxyJump: %q is not a host", spec)
	}
	return j, nil
}

// units are those of times (TIME FORMATS in sshd_config(5)).
var units = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// parseTime parses a time: numbers of seconds, or with units.
func parseTime(s string) (total time.Duration, err error) {
	for rest := s; rest != ""; {
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		count, err := strconv.ParseUint(rest[:n], 10, 31)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time", s)
		}
		unit := time.Second
		if rest = rest[n:]; rest != "" {
			if unit = units[rest[0]|0x20]; unit == 0 {
				return 0, fmt.Errorf("%q is not a time", s)
			}
			rest = rest[1:]
		}
		total += time.Duration(count) * unit
	}
	return total, nil
}

// commandTime bounds the time of a KnownHostsCommand, which may ask a directory server.
const commandTime = 30 * time.Second

// ofKey are the tokens of a KnownHostsCommand that stand for the key of the server.
var ofKey = []string{"%f", "%K", "%t"}

// knownHostsCommand returns a function that runs a KnownHostsCommand. It is run before the
// server's key is known: a command that wants that key is an error.
func (x *expander) knownHostsCommand(command string) func(host string) ([]byte, error) {
	if command == "none" {
		return nil
	}
	return func(host string) ([]byte, error) {
		args := words(command)
		for i, arg := range args {
			if slices.ContainsFunc(ofKey, func(token string) bool { return strings.Contains(strings.ReplaceAll(arg, "%%", ""), token) }) {
				return nil, errors.New("KnownHostsCommand: the tokens %f, %K and %t are not supported")
			}
			expanded, ok := x.replace(arg, map[string]string{"%H": host, "%I": "HOSTNAME"})
			if !ok {
				return nil, fmt.Errorf("KnownHostsCommand: %q has an unknown token or variable", arg)
			}
			args[i] = expanded
		}
		ctx, cancel := context.WithTimeout(context.Background(), commandTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.WaitDelay = time.Second // a program that it leaves behind may keep its output open
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("KnownHostsCommand %s: %w", args[0], err)
		}
		return out, nil
	}
}
