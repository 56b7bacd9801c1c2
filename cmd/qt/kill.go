package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/wire"
)

func killCommand() *cobra.Command {
	var opts options
	var allDetached bool
	c := &cobra.Command{
		Use:   "kill [flags] [[user@]host [session...]]",
		Short: "End sessions and their programs",
		Long: `End sessions and their programs. With --all-detached, end all that no client is attached to, on this
machine if no host is given.`,
		Args: usage(cobra.ArbitraryArgs),
		RunE: func(c *cobra.Command, args []string) error {
			host, names := splitHost(args)
			switch {
			case allDetached && len(names) > 0:
				return errors.New("--all-detached takes no names of sessions")
			case !allDetached && len(names) == 0:
				return withHint(errNoSession, nameSession, c.Name(), host)
			}
			return withClient(c.Context(), host, &opts, func(ctx context.Context, a *access) (err error) {
				if allDetached {
					if names, err = detachedSessions(ctx, a); err != nil {
						return err
					}
					if len(names) == 0 {
						say(noneDetached, place(host))
					}
				}
				return each(names, func(name string) error { return a.client.Kill(ctx, name) })
			})
		},
	}
	addTargetFlags(c, &opts)
	c.Flags().BoolVar(&allDetached, "all-detached", false, "end all sessions that no client is attached to")
	complete(c, &opts, manySessions...)
	return c
}

// detachedSessions returns the ids of the sessions to which a client could attach, and none is.
func detachedSessions(ctx context.Context, a *access) (ids []string, err error) {
	infos, _, err := a.client.List(ctx)
	for _, i := range infos {
		if i.PTY && i.Phase == wire.PhaseDetached {
			ids = append(ids, i.ID.String())
		}
	}
	return ids, err
}

// each calls f for every session, also after one has failed, and returns all errors.
func each(sessions []string, f func(session string) error) error {
	var errs []error
	for _, s := range sessions {
		errs = append(errs, f(s))
	}
	return errors.Join(errs...)
}
