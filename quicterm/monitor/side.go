//go:build linux || darwin

package monitor

import (
	"slices"
	"strings"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/forward/permit"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// maySide returns why the login may have no side pipe of a kind, or nil.
func (c *client) maySide(side wire.Side) error {
	switch side {
	case 0:
		return nil
	case wire.SideForward:
		if rules := c.allowed.Forwards(); c.allowed.Guest() || rules.Nothing() {
			return errorf(wire.CodeFailed,
				"nothing may be forwarded: by an option of the key, or by the server's sshd_config")
		}
		return nil
	case wire.SideFiles:
		if _, err := c.allowed.Files(); err != nil {
			return errorf(wire.CodeFailed, "%v", err)
		}
		return nil
	}
	return errorf(wire.CodeFailed, "the server does not know %v: it may be older than this client", side)
}

// launchSide makes a launch that of a side pipe, whose program gets its rules from here, and nothing that the client has
// sent. No command that is forced runs in its place: sshd forwards beside it, and for files it is sshd's own.
func (c *client) launchSide(launch *wire.Launch, side wire.Side) error {
	launch.Side, launch.PTY, launch.Start, launch.Persist, launch.ExitedTTL = side, false, "", nil, pipeTTL
	launch.Agent = false
	launch.Env = []string{"HOME=" + c.account.Home, "USER=" + c.account.Name}
	launch.Argv = []string{"qtd", permit.Command}
	if side == wire.SideForward {
		launch.Env = append(launch.Env, permit.Variable+"="+c.allowed.Forwards().Encode())
	} else {
		flags, err := c.allowed.Files()
		if err != nil {
			return err
		}
		launch.Argv = slices.Concat([]string{"qtd", auth.SFTPCommand}, flags)
	}
	launch.Command = summary(strings.Join(launch.Argv, " "))
	return nil
}
