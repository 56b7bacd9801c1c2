package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/web/link"
	"github.com/quicterm/quicterm/quicterm/wire"
)

func shareCommand() *cobra.Command {
	var opts options
	var types, once bool
	var good time.Duration
	var page string
	c := &cobra.Command{
		Use:   "share [flags] [user@]host session",
		Short: "Print a link by which a guest watches a session",
		Long: `Print a link for somebody without an account: in a browser it shows the session as it is from then
on, without its scrollback. You see the guest among the clients of the session, as guest NAME. The
guest can see no other session, and start, list and end none.

Whoever has the link is the guest, until its time is over or you end the share with qt shares --end;
then guests are disconnected at once. The server's page must be reachable for the guest: see the
setting web of qtd.`,
		Args: usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := errors.Join(checkGood(good), checkPage(page)); err != nil {
				return err
			}
			return reach.With(c.Context(), args[0], &opts.Options, func(ctx context.Context, a *reach.Access) error {
				l, err := newLink(ctx, a, args[0], args[1], page)
				if err != nil {
					return err
				}
				key := l.Seed.Signer().PublicKey().Marshal()
				sum := sha256.Sum256(key)
				name := args[1] + "-" + hex.EncodeToString(sum[:2])
				until, err := a.Client.Enroll(ctx, &wire.Enroll{
					Kind: auth.KindShare, Key: key, Name: name, Session: args[1], Types: types, Once: once,
					Seconds: uint32(good / time.Second),
				})
				if err != nil {
					return err
				}
				l.Share = &link.Share{Types: types, Until: until}
				fmt.Fprintln(c.OutOrStdout(), l.String())
				if types {
					say(guestTypes)
				}
				say(shareEnds, name, terminal.Duration(good), args[0], name)
				return nil
			})
		},
	}
	addTargetFlags(c, &opts)
	f := c.Flags()
	f.BoolVar(&types, "type", false, "let the guest type: that is as much as you can do")
	f.DurationVar(&good, "for", time.Hour, "for how `long` the link is good, at most 720h")
	f.BoolVar(&once, "once", false, "let in the first guest only")
	f.StringVar(&page, "url", "", "`address` of the server's page, if a proxy serves it: https://...")
	complete(c, &opts, hostNames, sessionNames)
	return c
}

func checkGood(good time.Duration) error {
	if good < time.Second {
		return errors.New("a share is good for a second at least: --for 1h")
	}
	return nil
}

// checkPage returns why a page cannot be where a URL says: a proxy on the way could change what it does.
func checkPage(page string) error {
	u, err := url.Parse(page)
	switch {
	case page == "":
		return nil
	case err != nil || u.Host == "" || u.Fragment != "" || u.RawQuery != "" || u.User != nil:
		return fmt.Errorf("%q is not the address of a page, such as https://server.example/", page)
	case u.Scheme == "https":
		return nil
	}
	at, err := netip.ParseAddr(u.Hostname())
	if local := u.Hostname() == "localhost" || err == nil && at.IsLoopback(); local && u.Scheme == "http" {
		return nil
	}
	return fmt.Errorf("%s: the page works over https alone, or on this machine", page)
}

// newLink returns a link, with a new key, to the page of a server that is described to a client. The page is where the user
// says, or the server.
func newLink(ctx context.Context, a *reach.Access, host, session, page string) (*link.Link, error) {
	d, _, err := a.Client.Describe(ctx)
	if err != nil {
		return nil, err
	}
	l := &link.Link{Seed: link.NewSeed(), User: a.Target.User, Host: a.Target.Name, Session: session}
	if l.Page, err = pageURL(page, &d, host); err != nil {
		return nil, err
	}
	if l.HostKey, err = hostID(&d); err != nil {
		return nil, err
	}
	if host == reach.ThisMachine {
		l.Host, _ = os.Hostname()
	}
	return l, nil
}

// pageURL returns where the page of a server is: what the user says, or what the server says.
func pageURL(page string, d *wire.Description, host string) (string, error) {
	if page == "" {
		page = d.Page
	}
	if page == "" {
		return "", reach.WithHint(fmt.Errorf("%s does not know where browsers find its page", reach.Place(host)),
			"name it with --url https://..., or give qtd the settings web, web_certificate and web_key")
	}
	if err := checkPage(page); err != nil {
		return "", err
	}
	u, err := url.Parse(page)
	if err == nil && u.Path == "" {
		u.Path = "/"
	}
	return u.String(), err
}

// hostID returns the host key that a browser is to expect.
func hostID(d *wire.Description) (auth.HostID, error) {
	if len(d.HostKey) != len(auth.HostID{}) {
		return auth.HostID{}, errors.New("the server is too old to tell its key for a link")
	}
	return auth.HostID(d.HostKey), nil
}

func sharesCommand() *cobra.Command {
	var opts options
	var asJSON bool
	var end string
	c := &cobra.Command{
		Use:   "shares [flags] [[user@]host]",
		Short: "List the links of guests, or end one",
		Long: `List the shares of your sessions on a host, or on this machine, or end one: its guests are
disconnected at once, and its link lets nobody in any more.

With --json, print an array with an object for each:

  fingerprint, name    of its key
  session              name of the session, or id of one that is over
  role                 watch, or share for a guest that types
  until                time when it ends
  once                 whether it lets in the first guest only
  opened               whether that has come`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			host, _ := splitHost(args)
			return reach.With(c.Context(), host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
				keys, err := a.Client.Keys(ctx)
				if err != nil {
					return err
				}
				if end != "" {
					sum, err := findKey(keys, end, auth.KindShare)
					if err != nil {
						return err
					}
					done, err := a.Client.Revoke(ctx, sum)
					if err != nil {
						return err
					}
					return revoked(done)
				}
				infos, _, err := a.Client.List(ctx)
				if err != nil {
					return err
				}
				shares := describeShares(keys, infos)
				if asJSON {
					return printIndented(c.OutOrStdout(), shares)
				}
				return printShares(c.OutOrStdout(), shares, time.Now())
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&end, "end", "", "end the share with this `name`, or whose key has a fingerprint that begins so")
	complete(c, &opts, hostNames)
	return c
}

// shareJSON is a share as qt shares --json prints it.
type shareJSON struct {
	Fingerprint string    `json:"fingerprint"`
	Name        string    `json:"name"`
	Session     string    `json:"session"`
	Role        string    `json:"role"`
	Until       time.Time `json:"until"`
	Once        bool      `json:"once"`
	Opened      bool      `json:"opened"`
}

func describeShares(keys []wire.EnrolledKey, infos []wire.Info) []shareJSON {
	shares := []shareJSON{}
	for _, k := range keys {
		if k.Kind != auth.KindShare {
			continue
		}
		s := shareJSON{
			Fingerprint: fingerprint(k.Sum), Name: k.Name, Session: k.Session.String(), Role: roleName(wire.RoleWatch),
			Until: time.Unix(k.Expires, 0).UTC(), Once: k.Once, Opened: k.Spent,
		}
		if k.Types {
			s.Role = roleName(wire.RoleShare)
		}
		for _, i := range infos {
			if i.ID == k.Session {
				s.Session = i.Name
			}
		}
		shares = append(shares, s)
	}
	return shares
}

func printShares(w io.Writer, shares []shareJSON, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSESSION\tROLE\tLEFT\tGOOD FOR\tKEY")
	for _, s := range shares {
		goodFor := "all who have the link"
		if s.Opened {
			goodFor = "the guest who came"
		} else if s.Once {
			goodFor = "the first guest"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
			s.Name, s.Session, s.Role, terminal.Duration(s.Until.Sub(now)), goodFor, s.Fingerprint)
	}
	return t.Flush()
}
