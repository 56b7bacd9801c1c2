//go:build linux || darwin

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/monitor"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// The commands by which an operator, or an account with a daemon of its own, sees and ends what that daemon serves.

// outdatedHelp is of the flag that selects sessions by the version that holds them.
const outdatedHelp = "only sessions that are held by another version of qtd than this one"

func lsCommand() *cobra.Command {
	var config string
	var asJSON, outdated bool
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the sessions of all accounts that the daemon serves, and their clients",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			status, err := askStatus(c.Context(), config)
			if err != nil {
				return err
			}
			sessions := selected(status.Sessions, outdated)
			saySilent(c.ErrOrStderr(), status.Silent)
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(sessions)
			}
			return printSessions(c.OutOrStdout(), sessions, time.Now())
		},
	}
	addConfigFlag(c, &config)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&outdated, "outdated", false, outdatedHelp)
	return c
}

// saySilent says how many sessions are not listed.
func saySilent(w io.Writer, silent int) {
	if silent > 0 {
		fmt.Fprintf(w, "qtd: %s not answer\n", number(silent, "session does", "sessions do"))
	}
}

// selected returns all sessions or, if outdated is true, those that this version of qtd does not hold.
func selected(sessions []monitor.SessionStatus, outdated bool) []monitor.SessionStatus {
	return slices.DeleteFunc(sessions, func(s monitor.SessionStatus) bool { return outdated && s.Holder == software() })
}

func endCommand() *cobra.Command {
	var config, reason string
	var outdated bool
	c := &cobra.Command{
		Use:   "end [flags] ID...",
		Short: "End sessions of any account, and tell the people at them why",
		Long: `End sessions, given by their ids or how these begin (qtd ls), or with --outdated all that another
version of qtd holds. Their programs get SIGHUP, and SIGKILL 3 s later. The people at their clients
see who has ended them, and the reason. The log says so too.`,
		RunE: func(c *cobra.Command, ids []string) error {
			if (len(ids) == 0) != outdated {
				return errors.New("name sessions by their ids, or give --outdated: qtd ls lists them")
			}
			if outdated {
				status, err := askStatus(c.Context(), config)
				if err != nil {
					return err
				}
				saySilent(c.ErrOrStderr(), status.Silent)
				for _, one := range selected(status.Sessions, outdated) {
					ids = append(ids, one.ID)
				}
			}
			return endSessions(c, config, ids, reason)
		},
	}
	addConfigFlag(c, &config)
	c.Flags().BoolVar(&outdated, "outdated", false, outdatedHelp)
	c.Flags().StringVar(&reason, "reason", "", "`text` for the people at the sessions")
	return c
}

// endSessions has the daemon end sessions, and prints what becomes of each.
func endSessions(c *cobra.Command, config string, ids []string, reason string) error {
	failed := 0
	for some := range slices.Chunk(ids, monitor.MaxEnded) {
		var ended []monitor.Ended
		form := url.Values{"id": some, "reason": {reason}}
		if err := ask(c.Context(), config, http.MethodPost, "/end", form, &ended); err != nil {
			return err
		}
		for _, one := range ended {
			if one.Error != "" {
				failed++
				fmt.Fprintf(c.ErrOrStderr(), "qtd: session %.8s does not end: %s\n", one.ID, one.Error)
				continue
			}
			fmt.Fprintf(c.OutOrStdout(), "%.8s %s of %s ends\n", one.ID, cmp.Or(one.Name, "a session"), one.Account)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%s not end", number(failed, "session does", "sessions do"))
	}
	return nil
}

func revokeCommand() *cobra.Command {
	var config string
	c := &cobra.Command{
		Use:   "revoke ACCOUNT|KEY",
		Short: "Take access from the clients of an account, or from those that a key has let in",
		Long: `Take access from clients that are attached to sessions, or away and about to come back: from
all of an account, or from those that have logged in with a key, to whichever account. A key is
given by its fingerprint (SHA256:...) or by the file of the public key, whose name has a slash
or ends in .pub. They are disconnected at once, and told why. Sessions with a terminal
continue, detached; commands without one are hung up.

Neither keeps a new login out: lock the account, or remove the key from authorized_keys, first.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			form, err := revokeForm(args[0])
			if err != nil {
				return err
			}
			revoked := new(wire.Revoked)
			if err := ask(c.Context(), config, http.MethodPost, "/revoke", form, revoked); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s lost access\n", number(int(revoked.Clients), "client has", "clients have"))
			if revoked.Silent > 0 {
				return fmt.Errorf("%s not answer, and their clients keep access: qtd ls lists the others",
					number(int(revoked.Silent), "session does", "sessions do"))
			}
			return nil
		},
	}
	addConfigFlag(c, &config)
	return c
}

// revokeForm returns the form that names an account or a key.
func revokeForm(name string) (url.Values, error) {
	sum := []byte(nil)
	if fingerprint, ok := strings.CutPrefix(name, "SHA256:"); ok {
		var err error
		if sum, err = base64.RawStdEncoding.DecodeString(fingerprint); err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%s is not the fingerprint of a key: ssh-keygen -l -f FILE shows it", name)
		}
	} else if strings.Contains(name, "/") || strings.HasSuffix(name, ".pub") {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		// No key is parsed here, where root may run this: its hash suffices.
		f := strings.Fields(string(content))
		if len(f) < 2 || strings.Contains(f[0], "-cert-") {
			return nil, fmt.Errorf("%s has no public key in one line: name the .pub file of a key, not of a certificate", name)
		}
		blob, err := base64.StdEncoding.DecodeString(f[1])
		if err != nil {
			return nil, fmt.Errorf("%s has no public key in one line: %w", name, err)
		}
		of := sha256.Sum256(blob)
		sum = of[:]
	} else {
		return url.Values{"account": {name}}, nil
	}
	return url.Values{"key": {hex.EncodeToString(sum)}}, nil
}
