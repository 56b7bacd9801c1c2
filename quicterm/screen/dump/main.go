// The dump program prints what a terminal shows after a recording of output, as JSON: see
// screen.Dump. With a flag it prints the bytes of a snapshot, or those that undo a session,
// after the first bytes of the recording.
//
//	go run ./quicterm/screen/dump [--snapshot AT | --undo AT] FILE [cols rows]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"

	"github.com/quicterm/quicterm/quicterm/screen"
)

func main() {
	snapshot := flag.Int("snapshot", -1, "print the snapshot after this many bytes")
	undo := flag.Int("undo", -1, "print what undoes a session after this many bytes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: dump [--snapshot AT | --undo AT] FILE [cols rows]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if n := flag.NArg(); n != 1 && n != 3 || *snapshot >= 0 && *undo >= 0 {
		flag.Usage()
		os.Exit(2)
	}
	out, err := dump(flag.Args(), *snapshot, *undo)
	if err == nil {
		_, err = os.Stdout.Write(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dump:", err)
		os.Exit(1)
	}
}

// dump returns what to print. The arguments are the file and the size; a position < 0 is not asked for.
func dump(args []string, snapshot, undo int) ([]byte, error) {
	cols, rows := 80, 24
	if len(args) == 3 {
		var err error
		if cols, err = strconv.Atoi(args[1]); err != nil {
			return nil, fmt.Errorf("columns: %w", err)
		}
		if rows, err = strconv.Atoi(args[2]); err != nil {
			return nil, fmt.Errorf("rows: %w", err)
		}
	}
	output, err := os.ReadFile(args[0])
	if err != nil {
		return nil, err
	}
	const lines = 5000 // the scrollback of the reference in testdata
	s := screen.New(cols, rows, screen.Limits{Lines: lines, Bytes: 64 << 20})
	if at := max(snapshot, undo); at >= 0 {
		if at > len(output) {
			return nil, fmt.Errorf("%s has only %d bytes", args[0], len(output))
		}
		output = output[:at]
	}
	s.Write(output)
	switch {
	case snapshot >= 0:
		return s.Snapshot(screen.Snapshot{Lines: lines}), nil
	case undo >= 0:
		return s.Undo(), nil
	}
	b, err := json.Marshal(s)
	return append(b, '\n'), err
}
