//go:build linux

// Command bench measures quicterm: the released programs on real terminals, sockets and
// networks, each figure beside the bound that it is to keep. README.md beside it says what
// is where.
package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/measure"
	"github.com/quicterm/quicterm/bench/program"
	"github.com/quicterm/quicterm/bench/report"
	"github.com/quicterm/quicterm/bench/scenario"
	"github.com/quicterm/quicterm/bench/work"
)

func main() {
	root := &cobra.Command{
		Use:          "bench",
		Short:        "Measure quicterm",
		SilenceUsage: true,
	}
	group := new(measure.Group)
	go group.EndOnSignal()
	root.AddCommand(runCommand(group), compareCommand(), reportCommand(), predictCommand())
	for name, run := range work.Programs {
		root.AddCommand(&cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return run(args) },
		})
	}
	if err := root.Execute(); err != nil {
		os.Exit(exitStatus(err))
	}
}

// exitStatus returns what the program exits with after an error.
func exitStatus(err error) int {
	if errors.As(err, new(report.BadInput)) {
		return 2
	}
	return 1
}

func compareCommand() *cobra.Command {
	var portable bool
	c := &cobra.Command{
		Use:   "compare OLD NEW",
		Short: "Say what got better or worse from one file of results to another",
		Long:  report.CompareRule,
		Args: func(c *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(2)(c, args); err != nil {
				return badArgument(c, err)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return report.CompareFiles(c.OutOrStdout(), c.ErrOrStderr(), args[0], args[1], portable)
		},
	}
	c.SetFlagErrorFunc(badArgument)
	c.Flags().BoolVar(&portable, "portable", false,
		"compare only what does not depend on the machine, such as ratios to the round trip")
	return c
}

func badArgument(_ *cobra.Command, err error) error { return report.NewBadInput(err) }

// publishedFolder has the results that the project's pages show.
const publishedFolder = "bench/results"

func reportCommand() *cobra.Command {
	o := report.Options{Scenarios: scenario.Names(), Programs: program.Names()}
	var publish bool
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Write the tables of a file of results as Markdown",
		Long: `Write the tables of a file of results as Markdown: of each scenario as it was measured last.

With --readme, the tables go into a page between the two comments
<!-- results of NAME --> and <!-- end of NAME -->, where NAME is that of the file of
results without its folder and ending; with --summary as well, a short table goes between
<!-- summary of NAME --> and <!-- end of summary of NAME -->.

With --publish, the results first replace those of the same scenarios and programs in the
file of the same name in ` + publishedFolder + `, which is then the one that is reported.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file := args[0]
			if publish {
				published := filepath.Join(publishedFolder, filepath.Base(file))
				if err := report.Publish(c.ErrOrStderr(), file, published); err != nil {
					return err
				}
				file = published
			}
			return report.Write(c.OutOrStdout(), c.ErrOrStderr(), file, o)
		},
	}
	c.Flags().StringVar(&o.Page, "readme", "", "put the tables into this `file`")
	c.Flags().BoolVar(&publish, "publish", false, "keep the results in "+publishedFolder)
	c.Flags().BoolVar(&o.Summary, "summary", false, "write one short table")
	return c
}
