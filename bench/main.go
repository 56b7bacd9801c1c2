//go:build linux

// Command bench measures quicterm: the released programs on real terminals,
// sockets and networks, each figure beside the bound that it is to keep.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quicterm/quicterm/bench/rig"
)

func main() {
	if os.Getenv(bareServerEnv) != "" {
		if err := bareServer(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	root := &cobra.Command{
		Use:          "bench",
		Short:        "Measure quicterm",
		SilenceUsage: true,
	}
	running := new(measurements)
	go running.endOnSignal()
	root.AddCommand(sessionCommand(running), roamCommand(running), feelCommand(running), runCommand(running), peersCommand(running), floodCommand(), echoCommandLine(), outputCommand())
	root.AddCommand(compareCommand(), reportCommand())
	if err := root.Execute(); err != nil {
		os.Exit(exitStatus(err))
	}
}

// A row is one figure that is measured.
type row struct {
	name  string
	bound string
	// measure returns the figure as text, and whether it keeps the bound.
	measure func(m *measurement) (string, bool)
}

// runRows measures the rows whose names contain a text and prints them as a table.
// Those of a group wait more than they compute, and run at the same time.
func (all *measurements) runRows(w io.Writer, only string, groups [][]row) error {
	dir, err := os.MkdirTemp("", "qt")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all.removeOnSignal(dir)
	if err := rig.Build(dir); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, %s, %d cores, %s/%s\n", time.Now().Format(time.DateOnly), runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	name, bound := 0, 0
	for i, group := range groups {
		group = slices.DeleteFunc(group, func(r row) bool { return !strings.Contains(r.name, only) })
		for _, r := range group {
			name, bound = max(name, len(r.name)), max(bound, len(r.bound))
		}
		groups[i] = group
	}
	line := fmt.Sprintf("%%-%ds  %%-%ds  %%-48s  %%s\n", name, bound)
	fmt.Fprintf(w, line, "WHAT", "BOUND", "MEASURED", "")
	missed := 0
	for _, group := range groups {
		lines := make([]chan string, len(group))
		kept := make([]bool, len(group))
		for i := range group {
			lines[i] = make(chan string)
			go func() {
				r := &group[i]
				var figure string
				var ok bool
				err := all.run(r.name, dir, func(m *measurement) { figure, ok = r.measure(m) })
				verdict := "ok"
				switch {
				case err != nil:
					figure, verdict = strings.Join(strings.Fields(err.Error()), " "), "FAILED"
				case !ok:
					verdict = "MISSED"
				default:
					kept[i] = true
				}
				lines[i] <- fmt.Sprintf(line, r.name, r.bound, figure, verdict)
			}()
		}
		for i, line := range lines {
			io.WriteString(w, <-line)
			if !kept[i] {
				missed++
			}
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d bounds are not kept", missed)
	}
	return nil
}

// median returns the middle one of some durations.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
