package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/cmd/qt/internal/status"
	"github.com/quicterm/quicterm/quicterm/client/forwards"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// forwardFlags are the forwards of a command line.
type forwardFlags struct {
	specs []forwards.Spec
	only  bool  // no session
	none  bool  // whatever ssh's configuration says
	agent *bool // nil as ssh's configuration says

	confirm bool // each signature of the agent
}

// addAgent adds the flag that offers the ssh agent to the session.
func (f *forwardFlags) addAgent(c *cobra.Command) {
	c.Flags().VarPF(flagValue{kind: "bool", set: func(text string) error {
		offered, err := strconv.ParseBool(text)
		f.agent = &offered
		return err
	}}, "forward-agent", "A", "let the session use your ssh agent while you are at its keyboard "+
		"(-A=false: not even if ssh's configuration says so)").NoOptDefVal = "true"
	c.Flags().BoolVar(&f.confirm, "agent-confirm", false, "as -A, but ask on this terminal for each signature: ~< answers")
}

// checkConfirm makes --agent-confirm mean -A, for a session of which this client has the terminal, with an escape.
func (f *forwardFlags) checkConfirm(onTerminal bool) error {
	switch {
	case !f.confirm:
		return nil
	case f.agent != nil && !*f.agent:
		return errors.New("--agent-confirm and -A=false exclude each other")
	case !onTerminal:
		return errors.New("--agent-confirm asks on the terminal of a session, by an escape: it needs one, as of -t, and escape_char")
	}
	f.agent = &f.confirm
	return nil
}

// agentOf returns the socket of the ssh agent that the session may use, or nothing.
func (f *forwardFlags) agentOf(a *reach.Access) string {
	t := a.Target
	switch {
	case f.only || f.agent != nil && !*f.agent || f.agent == nil && !t.ForwardAgent:
		return ""
	case t.OfferedAgent == "":
		say(noAgent)
		return ""
	case f.agent == nil && !a.WasKnown:
		say(agentOfUnknown, t.Name)
		return ""
	}
	return t.OfferedAgent
}

// laterAgent returns the Agent of an Attach for a session that is left at once: clients that attach later may offer one.
func (f *forwardFlags) laterAgent() []byte {
	if f.agent == nil || !*f.agent {
		return nil
	}
	id := make([]byte, len(wire.AgentID{}))
	rand.Read(id)
	return id
}

const (
	noAgent        = "no ssh agent is forwarded: none runs here, as SSH_AUTH_SOCK or ssh's configuration would say"
	agentOfUnknown = "no ssh agent is forwarded: the key of %s was not known before. -A does it also then"
)

func (f *forwardFlags) add(c *cobra.Command) {
	for kind, text := range map[forwards.Kind]string{
		forwards.Local:   "`[bind:]port:host:port`: connections to a port of this machine go on from the server; datagrams with udp/ in front",
		forwards.Remote:  "`[bind:]port:host:port`: connections to a port of the server go on from this machine",
		forwards.Dynamic: "`[bind:]port`: connections by SOCKS to a port of this machine go on from the server",
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
		defer showReport("", opts, func() *status.Report { return status.New(host, f.Link(), f) })()
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
		if len(specs) > 0 || opts.forward.agent != nil && *opts.forward.agent {
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
	config.Specs, config.Agent, config.Confirm = specs, opts.forward.agentOf(a), opts.forward.confirm
	return forwards.Start(ctx, a.Client, config)
}
