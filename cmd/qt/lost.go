package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/screen/picture"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// lostOf returns what a lost session has left, if an error is the answer to an attach to one.
func lostOf(err error) *wire.Lost {
	var refusal *wire.Error
	if errors.As(err, &refusal) {
		return refusal.Lost
	}
	return nil
}

// printLost prints what a lost session has left: its scrollback and screen, and how to start it again.
func printLost(w io.Writer, host string, opts *options, lost *wire.Lost) error {
	s := screen.New(int(max(lost.Size.Cols, 1)), int(max(lost.Size.Rows, 1)), screen.Limits{})
	s.Write(lost.Screen)
	cols, rows := s.Size()
	for rows > 0 && s.Row(rows-1).Text() == "" {
		rows--
	}
	out := bufio.NewWriter(w)
	for y := -s.Lines(); y < rows; y++ {
		out.Write(append(picture.AppendColumns(nil, s.Row(y), 0, cols), '\n'))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	seen := time.Unix(lost.Seen, 0).Format("2006-01-02 15:04:05 MST")
	why := "its holder was killed"
	if lost.Rebooted {
		why = "the machine was rebooted"
	}
	if lost.Exited {
		why = fmt.Sprintf("its program had ended with status %d", lost.Status)
		if lost.Reason != "" {
			why = "it was " + lost.Reason
		}
	}
	say(sessionWasLost, lost.Name, seen, why, lost.Dir)
	say("%s removes what is left; %s starts it again", endCommand(host, opts, lost.Name), startCommand(host, opts, lost))
	return nil
}

// startCommand returns the command that starts a lost session again.
func startCommand(host string, opts *options, lost *wire.Lost) string {
	words := []string{"qt", "connect"}
	if lost.Command != "" {
		words = append(words, "-t")
	}
	line := withTarget(append(words, "-s", lost.Name), opts, host)
	if lost.Command != "" {
		line += " " + quoted(lost.Command)
	}
	return line
}

// quoted returns text as one word of a shell. Characters that cannot be printed are escaped as bash has it.
func quoted(text string) string {
	if wire.Printable(text, len(text)) == text {
		return shellWord(text)
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(text) {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString("'")
	return b.String()
}
