package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func killCommand() *cobra.Command {
	var opts options
	var allDetached bool
	c := &cobra.Command{
		Use:   "kill [flags] [[user@]host [session...]]",
		Short: "End sessions and their programs",
		Long: `End sessions and their programs: each program gets SIGHUP, and SIGKILL 3 s later. qt waits for its end. With
--all-detached, end all that no client is attached to, on this machine if no host is given.`,
		Args: usage(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, args []string) error {
			host, names := splitHost(args)
			switch {
			case allDetached && len(names) > 0:
				return errors.New("--all-detached takes no names of sessions")
			case !allDetached && len(names) == 0:
				return reach.WithHint(errNoSession, nameSession, c.Name(), host)
			}
			return reach.With(c.Context(), host, &opts.Options, func(ctx context.Context, a *reach.Access) (err error) {
				if allDetached {
					return killDetached(ctx, a, host)
				}
				return errors.Join(a.Client.Kill(ctx, names...)...)
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&allDetached, "all-detached", false, "end all sessions that no client is attached to")
	complete(c, &opts, manySessions...)
	return c
}

// killDetached ends the sessions to which a client could attach, and none is, and says how many.
func killDetached(ctx context.Context, a *reach.Access, host string) error {
	infos, _, err := a.Client.List(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for _, i := range infos {
		if i.PTY && i.Phase == wire.PhaseDetached {
			ids = append(ids, i.ID.String())
		}
	}
	if len(ids) == 0 {
		say(noneDetached, reach.Place(host))
		return nil
	}
	failed := slices.DeleteFunc(a.Client.Kill(ctx, ids...), func(err error) bool { return err == nil })
	say(detachedEnd, reach.Place(host), len(ids)-len(failed))
	return errors.Join(failed...)
}

func renameCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "rename [flags] [[user@]host] session name",
		Short: "Give a session another name",
		Long: `Give a session another name, as for qt connect --session: up to 32 letters, digits, dots,
dashes and underscores. Its clients stay attached. Without a host, the session is one of this machine.`,
		Args: usage(cobra.RangeArgs(2, 3)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				args = append([]string{reach.ThisMachine}, args...)
			}
			return reach.With(c.Context(), args[0], &opts.Options, func(ctx context.Context, a *reach.Access) error {
				return a.Client.Rename(ctx, args[1], args[2])
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, hostNames, sessionNames)
	return c
}

func clearCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "clear-history [flags] [user@]host session...",
		Short: "Make sessions forget their earlier output",
		Long: `Make sessions forget the output that their clients have had: the server keeps some of it to
show it to the next client. The screen stays, and so does output that no client has had. So do the
scrollback of your own terminal, and recordings.`,
		Args: usage(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return reach.With(c.Context(), args[0], &opts.Options, func(ctx context.Context, a *reach.Access) error {
				var errs []error
				for _, name := range args[1:] {
					cleared, err := a.Client.Clear(ctx, name)
					if err != nil {
						errs = append(errs, err)
						continue
					}
					fmt.Printf(historyCleared+"\n", name, cleared.Bytes, cleared.Lines)
					if cleared.Kept > 0 {
						say(historyKept, cleared.Kept)
					}
				}
				return errors.Join(errs...)
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, manySessions...)
	return c
}

func revokeCommand() *cobra.Command {
	var opts options
	c := &cobra.Command{
		Use:   "revoke [flags] key|device|all [[user@]host]",
		Short: "Take access from the clients that a key or device has let in, or from all",
		Long: `Take access from clients that are attached to your sessions on a host (this
machine, if none is given), or away and about to come back: from those that
have logged in with a key, given by its fingerprint (SHA256:...) or by the file
of the public key, or from all, whatever let them in. They are disconnected at
once. Sessions with a terminal continue, detached; commands without one are
hung up, because no other client can have their output.

With "all", that includes the client in which you type this.

A device, which qt devices lists, is given by its name, or by the start of its
fingerprint. It is removed: it cannot log in again. So are the devices, links
and shares that logins by the key have enrolled and, with "all", each of them.

The key can still log in as long as it is in authorized_keys: remove it there first.`,
		Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			sum, keyErr := keySum(args[0])
			if keyErr != nil && !mayNameKey(args[0]) {
				return keyErr
			}
			host, _ := splitHost(args[1:])
			return reach.With(c.Context(), host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
				if keyErr != nil {
					keys, err := a.Client.Keys(ctx)
					if err != nil {
						return err
					}
					sum, err = findKey(keys, args[0], auth.KindDevice, auth.KindLink, auth.KindShare)
					if err != nil {
						return fmt.Errorf("%w; %w", err, keyErr)
					}
				}
				done, err := a.Client.Revoke(ctx, sum)
				if err != nil {
					return err
				}
				return revoked(done)
			})
		},
	}
	addTargetFlags(c, &opts)
	complete(c, &opts, keyNames, hostNames)
	return c
}

// mayNameKey reports whether an argument may be the name of an enrolled key, or the start of its fingerprint.
func mayNameKey(arg string) bool {
	if strings.HasPrefix(arg, "SHA256:") {
		return len(arg) >= minFingerprint
	}
	return !strings.ContainsRune(arg, '/')
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
		return nil, reach.WithHint(err, "name a file with a public key, a fingerprint (SHA256:...), or all")
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
