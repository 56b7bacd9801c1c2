package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
)

func revokeCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "revoke [flags] key|all [[user@]host]",
		Short: "Take access from the clients that a key has let in, or from all",
		Long: `Take access from clients that are attached to your sessions on a host (this
machine, if none is given), or away and about to come back: from those that
have logged in with a key, given by its fingerprint (SHA256:...) or by the file
of the public key, or from all, whatever let them in. They are disconnected at
once. Sessions with a terminal continue, detached; commands without one are
hung up, because no other client can have their output.

With "all", that includes the client in which you type this.

The key can still log in as long as it is in authorized_keys: remove it there first.`,
		Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			sum, err := keySum(args[0])
			if err != nil {
				return err
			}
			host, _ := splitHost(args[1:])
			return withClient(c.Context(), host, &opts, func(ctx context.Context, a *access) error {
				clients, silent, err := a.client.Revoke(ctx, sum)
				if err != nil {
					return err
				}
				return revoked(clients, silent)
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, keyNames, hostNames)
	return c
}

// keySum returns the SHA-256 of a public key that is given by its fingerprint or its file,
// or nil for "all".
func keySum(key string) ([]byte, error) {
	if key == "all" {
		return nil, nil
	}
	if fingerprint, ok := strings.CutPrefix(key, "SHA256:"); ok {
		sum, err := base64.RawStdEncoding.DecodeString(fingerprint)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s is not the fingerprint of a key: ssh-keygen -l -f FILE shows it", key)
		}
		return sum, nil
	}
	content, err := os.ReadFile(key)
	if errors.Is(err, os.ErrNotExist) {
		return nil, withHint(err, "name a file with a public key, a fingerprint (SHA256:...), or all")
	}
	if err != nil {
		return nil, err
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey(content)
	if err != nil {
		return nil, fmt.Errorf("%s has no public key: name the .pub file", key)
	}
	sum := sha256.Sum256(public.Marshal())
	return sum[:], nil
}
