// Package man makes manual pages from the help of a command line.
package man

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Write writes a page for a command, and one for each of its subcommands, into a directory.
// The date in a page is that of the commit it was made from.
func Write(root *cobra.Command, section, dir string, date time.Time) error {
	root.DisableAutoGenTag = true
	root.CompletionOptions.DisableDefaultCmd = true
	markDown(root)
	header := &doc.GenManHeader{Section: section, Source: "quicterm", Manual: "quicterm", Date: &date}
	return doc.GenManTree(root, header, dir)
}

// markDown changes help texts to Markdown, which the generator takes: our lists and tables are
// indented by two spaces, and must stay as they are.
func markDown(c *cobra.Command) {
	lines := strings.Split(c.Long, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  ") {
			lines[i] = "  " + line
		} else {
			lines[i] = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`).Replace(line)
		}
	}
	c.Long = strings.Join(lines, "\n")
	for _, sub := range c.Commands() {
		markDown(sub)
	}
}
