//go:build linux || darwin

package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/files"
)

// sftpCommand returns the hidden command that serves the files of the account, as the program of a side pipe. Its flags
// are those of sftp-server(8).
func sftpCommand() *cobra.Command {
	var readOnly bool
	var umask, dir string
	c := &cobra.Command{
		Use:    auth.SFTPCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if umask != "" {
				mask, err := strconv.ParseUint(umask, 8, 9)
				if err != nil {
					return fmt.Errorf("-u %s: %w", umask, err)
				}
				syscall.Umask(int(mask))
			}
			if dir != "" {
				if err := os.Chdir(dir); err != nil {
					return err
				}
			}
			return files.Serve(os.Stdin, os.Stdout, readOnly)
		},
	}
	c.Flags().BoolVarP(&readOnly, "read-only", "R", false, "")
	c.Flags().StringVarP(&umask, "umask", "u", "", "")
	c.Flags().StringVarP(&dir, "directory", "d", "", "")
	return c
}
