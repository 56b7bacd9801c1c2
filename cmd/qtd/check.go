//go:build linux || darwin

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/configs"
	"github.com/quicterm/quicterm/quicterm/monitor"
)

func checkCommand() *cobra.Command {
	var config, from, key string
	c := &cobra.Command{
		Use:   "check [flags] [account]",
		Short: "Show whether an account or a key may log in, and the rules that say so",
		Long: `Show the rules that are in force for logins to an account, each with where it comes from: a
line of the settings file or of sshd's, a default of qtd, or sshd -T, which prints it for this login. Then show
whether the account gets in, and with --key whether that key or certificate does, by
which line of which file, and what it may do; or why it does not. No daemon needs to run.
As a login does, it runs sshd -T and the program of AuthorizedKeysCommand. It changes nothing,
except that it makes the directory in /run that sshd -T needs, if that is missing.

Without an account, it is that of the process. Only root can ask about others. The exit status
is 0 if the login gets in, and 1 if not.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			settings, err := loadSettings(config, nil, false)
			if err != nil {
				return err
			}
			address, err := netip.ParseAddr(from)
			if err != nil {
				return fmt.Errorf("--from: %w", err)
			}
			var content []byte
			if key != "" {
				if content, err = readKey(key); err != nil {
					return err
				}
			}
			user := ""
			if len(args) > 0 {
				user = args[0]
			}
			access, err := monitor.Check(c.Context(), monitor.Config{Settings: settings}, user, address, content)
			if err != nil {
				return err
			}
			if config == "" {
				config, _ = configs.ServerFile()
			}
			return printAccess(c.OutOrStdout(), access, config, address)
		},
	}
	addConfigFlag(c, &config)
	c.Flags().StringVar(&from, "from", "127.0.0.1", "`address` of the client")
	c.Flags().StringVar(&key, "key", "", "`file` with a public key or a certificate")
	return c
}

// maxKey bounds a file with a public key or a certificate, in bytes: large ones have some KB.
const maxKey = 64 << 10

// readKey reads a file with a public key or a certificate. It does not wait for a writer, as opening
// a pipe does: root may ask about a file of an account.
func readKey(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err == nil && len(content) > maxKey {
		err = fmt.Errorf("%s: larger than %d bytes", name, maxKey)
	}
	return content, err
}

// printAccess prints an access. It returns errChecks if the login does not get in.
func printAccess(w io.Writer, access *monitor.Access, config string, from netip.Addr) error {
	content, _ := os.ReadFile(config)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if access.SSHD != nil {
		fmt.Fprintf(table, "sshd\t%s\t%s\n", strings.Join(append([]string{access.SSHD.File}, access.SSHD.Options...), " "),
			cmp.Or(access.SSHD.From, "installed"))
	}
	for _, rule := range access.Rules {
		source := sourceInSSHD(sshdFiles(), rule.Keyword, rule.Value)
		if rule.Own {
			source = sourceOf(config, string(content), rule.Keyword)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", rule.Keyword, shorten(rule.Value), source)
	}
	fmt.Fprintf(table, "session\t%s\t\n", access.Login)
	if err := table.Flush(); err != nil {
		return err
	}
	var refused error
	name := fmt.Sprintf("account %s from %v", access.Account.Name, from)
	if refused = access.Refused; refused == nil {
		fmt.Fprintf(w, "%s: gets in\n", name)
	} else {
		fmt.Fprintf(w, "%s: does not get in: %v\n", name, refused)
	}
	if key := access.Key; key != nil && key.Allowed == nil {
		refused = errors.Join(refused, key.Refused)
		fmt.Fprintf(w, "%s: does not get in: %v\n", key.Fingerprint, key.Refused)
	} else if key != nil {
		var limits strings.Builder
		if key.Allowed.Command != "" {
			fmt.Fprintf(&limits, ", runs only %q", key.Allowed.Command)
		}
		if key.Allowed.NoPTY {
			limits.WriteString(", has no terminal")
		}
		if key.Allowed.Verified {
			limits.WriteString(", must verify its user")
		}
		fmt.Fprintf(w, "%s: gets in by %s%s\n", key.Fingerprint, key.Where, limits.String())
	}
	if refused != nil {
		return errChecks
	}
	return nil
}

// shorten returns the beginning of a value: lists of algorithms are long.
func shorten(value string) string {
	const most = 60
	if len(value) > most {
		return value[:most-3] + "..."
	}
	return value
}

// unset is the source of a setting that the settings file does not have.
const unset = "default"

// sourceOf returns the line of the settings file that has a setting, or that it is the default.
func sourceOf(file, content, setting string) string {
	at := regexp.MustCompile(`(?m)^[ \t]*` + setting + `[ \t]*=`).FindStringIndex(content)
	if at == nil {
		return unset
	}
	return fmt.Sprintf("%s:%d", file, strings.Count(content[:at[0]], "\n")+1)
}

// sshdFiles returns the files that sshd's configuration usually is in.
func sshdFiles() []string {
	included, _ := filepath.Glob("/etc/ssh/sshd_config.d/*.conf")
	return append(included, "/etc/ssh/sshd_config")
}

// sourceInSSHD returns the line of sshd's files that gives an item its value. If several do, it is one
// of them; sshd -T does not say which, nor which Match block applies. Without such a line it is a
// default, or in a file that is not looked at.
func sourceInSSHD(files []string, keyword, value string) string {
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		number := 0
		for line := range strings.Lines(string(content)) {
			number++
			fields := strings.Fields(line)
			if len(fields) < 2 || !strings.EqualFold(fields[0], keyword) {
				continue
			}
			if slices.Contains(fields[1:], value) || strings.Join(fields[1:], " ") == value {
				return fmt.Sprintf("%s:%d", file, number)
			}
		}
	}
	return "sshd -T"
}
