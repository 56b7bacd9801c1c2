package sshconfig

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

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
			tokens := strings.ReplaceAll(arg, "%%", "")
			if slices.ContainsFunc(ofKey, func(token string) bool { return strings.Contains(tokens, token) }) {
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
