package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func devicesCommand() *cobra.Command {
	var opts options
	var asJSON bool
	c := &cobra.Command{
		Use:   "devices [flags] [[user@]host]",
		Short: "List the browsers that log in to a host without ssh",
		Long: `List the devices of your account on a host, or on this machine: browsers that keep a key with which
they log in. Links are listed too: those that nobody has opened yet, and those whose page is not
remembered as a device. Each was enrolled by a login, is allowed what that one's key is allowed, and
ends with it, when you end it with qt revoke, or when it has not logged in for 90 days.

With --json, print an array with an object for each:

  fingerprint          of its key, for qt revoke
  kind                 device or link
  name, by             by is the login that has enrolled it: the fingerprint of its key, token or
                       ssh
  enrolled, used       times when that was, and when it has logged in last
  opened               true for a link that lets in nobody else`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			host, _ := splitHost(args)
			return reach.With(c.Context(), host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
				keys, err := a.Client.Keys(ctx)
				if err != nil {
					return err
				}
				devices := []deviceJSON{}
				for _, k := range keys {
					if k.Kind != auth.KindShare {
						devices = append(devices, deviceJSON{
							Fingerprint: fingerprint(k.Sum), Kind: k.Kind, Name: k.Name, By: k.By,
							Enrolled: time.Unix(k.Made, 0).UTC(), Used: time.Unix(k.Used, 0).UTC(), Opened: k.Spent,
						})
					}
				}
				if asJSON {
					return printIndented(c.OutOrStdout(), devices)
				}
				return printDevices(c.OutOrStdout(), devices, time.Now())
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	complete(c, &opts, hostNames)
	return c
}

// deviceJSON is a device or link as qt devices --json prints it.
type deviceJSON struct {
	Fingerprint string    `json:"fingerprint"`
	Kind        string    `json:"kind"`
	Name        string    `json:"name"`
	By          string    `json:"by"`
	Enrolled    time.Time `json:"enrolled"`
	Used        time.Time `json:"used"`
	Opened      bool      `json:"opened,omitempty"`
}

func printDevices(w io.Writer, devices []deviceJSON, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tKIND\tENROLLED\tUSED\tKEY\tBY")
	for _, d := range devices {
		kind := d.Kind
		if d.Opened {
			kind += ", opened"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, kind, terminal.Duration(now.Sub(d.Enrolled)), terminal.Duration(now.Sub(d.Used)),
			d.Fingerprint, d.By)
	}
	return t.Flush()
}

func printIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// fingerprint returns the fingerprint of a key with a SHA-256, as ssh prints it.
func fingerprint(sum []byte) string { return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum) }

// minFingerprint is how many characters of a fingerprint name a key.
const minFingerprint = len("SHA256:") + 4

// findKey returns the SHA-256 of the enrolled key that has a name, or a fingerprint that begins so, of some kinds.
func findKey(keys []wire.EnrolledKey, name string, kinds ...string) ([]byte, error) {
	var found []string
	var sum []byte
	for _, k := range keys {
		f := fingerprint(k.Sum)
		if slices.Contains(kinds, k.Kind) && (k.Name == name || len(name) >= minFingerprint && strings.HasPrefix(f, name)) {
			found, sum = append(found, f), k.Sum
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no %s %q", strings.Join(kinds, ", "), name)
	case 1:
		return sum, nil
	}
	err := fmt.Errorf("%d keys are named %q", len(found), name)
	return nil, reach.WithHint(err, "name one of %s", strings.Join(found, ", "))
}
