package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/forwards"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// forwardFlags are the forwards of a command line.
type forwardFlags struct {
	specs []forwards.Spec
	only  bool // no session
	none  bool // whatever ssh's configuration says
}

func (f *forwardFlags) add(c *cobra.Command) {
	for kind, text := range map[forwards.Kind]string{
		forwards.Local:   "`[bind:]port:host:port`: connections to a port of this machine go on from the server",
		forwards.Remote:  "`[bind:]port:host:port`: connections to a port of the server go on from this machine",
		forwards.Dynamic: "`[bind:]port`: connections by SOCKS 5 to a port of this machine go on from the server",
	} {
		c.Flags().VarP(flagValue{kind: "forward", set: func(text string) error {
			spec, err := forwards.Parse(kind, text)
			f.specs = append(f.specs, spec)
			return err
		}}, map[forwards.Kind]string{
			forwards.Local: "local-forward", forwards.Remote: "remote-forward", forwards.Dynamic: "dynamic-forward",
		}[kind], string(kind), text)
	}
}

func forwardCommand() *cobra.Command {
	opts := options{forward: forwardFlags{only: true}}
	c := &cobra.Command{
		Use:   "forward [flags] [user@]host",
		Short: "Forward ports, without a session",
		Long: `Forward ports and unix sockets, as -L, -R and -D and ssh's configuration say, until Ctrl-C.
There is no session. Connections survive what a session survives: another network, an outage, a
restart of the daemon.`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return runForward(c.Context(), args[0], &opts) },
	}
	addTargetFlags(c, &opts)
	addPathFlags(c, &opts)
	opts.forward.add(c)
	complete(c, &opts, hostNames)
	return c
}

// forwardsOver says that all has begun.
const forwardsOver = "forwarding by %s, until Ctrl-C"

// runForward forwards without a session.
func runForward(ctx context.Context, host string, opts *options) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return reach.With(ctx, host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
		f, err := startForwards(ctx, a, opts)
		if err != nil {
			return err
		}
		if f == nil {
			return errors.New("there is nothing to forward: name it with -L, -R or -D")
		}
		defer f.Close()
		defer showReport("", opts, func() *report { return newReport(host, f.Link(), f) })()
		say(forwardsOver, host)
		ctx, stop := reach.UntilSignal(ctx, syscall.SIGINT, syscall.SIGQUIT)
		defer stop()
		var signaled *reach.SignalError
		if err = f.Wait(ctx); errors.As(err, &signaled) && signaled.Signal == syscall.SIGINT {
			return nil
		}
		return err
	})
}

// startForwards starts what the command line and ssh's configuration forward. It returns nil if that is nothing, and there
// is no session in which the user may add some.
func startForwards(ctx context.Context, a *reach.Access, opts *options) (*forwards.Forwards, error) {
	specs := opts.forward.specs
	if opts.forward.none || opts.role == wire.RoleWatch {
		return nil, nil
	}
	config := forwards.Config{Now: opts.forward.only, Log: a.Log, Say: func(line string) { say("%s", line) }}
	if a.Target.Local {
		if len(specs) > 0 {
			return nil, errors.New("this machine is the server: there is nothing to forward")
		}
		return nil, nil
	}
	config.Strict, config.Permit = a.Target.StrictForwards, a.Target.PermitRemoteOpen
	for _, forward := range a.Target.Forwards {
		spec, err := forwards.Parse(forwards.Kind(forward[0][0]), forward[1])
		if err != nil && config.Strict {
			return nil, err
		}
		if err != nil {
			say("%v", err)
			continue
		}
		specs = append(specs[:len(specs):len(specs)], spec)
	}
	if a.Target.NoForwards {
		specs = nil
	}
	if len(specs) == 0 && config.Now {
		return nil, nil
	}
	config.Specs = specs
	return forwards.Start(ctx, a.Client, config)
}
