package main

import (
	"embed"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/client/reach"
)

//go:embed integration
var integrations embed.FS

func integrationCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "shell-integration bash|zsh|fish",
		Short: "Print lines for a shell's startup file that mark its prompts and commands",
		Long: `Print lines for the end of a shell's startup file on the machine where the shell runs: ~/.bashrc, ~/.zshrc
or ~/.config/fish/config.fish. They make the shell tell where its prompts, its commands and their output
begin (OSC 133), the exit status, and its directory (OSC 7). Terminals jump between prompts by that, and
qt peek lists the commands. Your prompt and hooks stay as they are.`,
		Args:      usage(cobra.ExactArgs(1)),
		ValidArgs: shells,
		RunE: func(c *cobra.Command, args []string) error {
			text, err := integrations.ReadFile("integration/" + args[0])
			if err != nil {
				return reach.WithHint(errors.New("there are no lines for the shell "+args[0]), "there are for %s",
					strings.Join(shells, ", "))
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
}
