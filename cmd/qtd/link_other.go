//go:build darwin

package main

import "github.com/spf13/cobra"

// linkCommand returns no command: there is no such process here.
func linkCommand() *cobra.Command { return &cobra.Command{Use: "link", Hidden: true} }
