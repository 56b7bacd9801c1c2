package bootstrap

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/quicterm/quicterm/quicterm/wire"
)

// remoteCommand returns the command that runs qtd on the server, from any login shell. It has
// neither an exclamation mark nor a single quote within the quotes, for csh. The empty line ends
// what a login prints without the end of a line, such as a title for the terminal.
//
// sshd accepts standard input one round trip after the command. If first, the first bytes of the
// stream, may be public, the command has them too, and qtd does not wait for them.
func remoteCommand(first []byte) string {
	variable := ""
	if b := base64.StdEncoding.EncodeToString(first); len(b) <= maxVariable && isPublic(first) {
		variable = "export " + OpenVariable + "=" + b + "; "
	}
	return runQtd + variable + `exec "$q" grant --stdio'`
}

// runQtd is the beginning of that command, which finds qtd.
const runQtd = `sh -c 'q=$(command -v qtd) || q=$HOME/.local/bin/qtd; ` +
	`[ -e "$q" ] || { echo; echo "` + missingLine + `"; exit 127; }; `

// TokenCommand is the command that prints a grant with a token, for [ReadToken].
const TokenCommand = runQtd + `exec "$q" grant --ssh'`

// ReadToken returns the grant in the output of TokenCommand on a host.
func ReadToken(host string, r io.Reader) (*wire.Grant, error) {
	text, prefix, err := find(bufio.NewReaderSize(r, maxLine), linePrefix, missingLine)
	if err != nil {
		return nil, err
	}
	if prefix != linePrefix {
		return nil, noGrant(host, prefix)
	}
	return parseGrant(text)
}

// relayLine is the line behind which the output of RelayCommand is that of the daemon.
const relayLine = "quicterm-relay"

// RelayCommand is the command that makes standard input and output a connection to the daemon's TCP port, behind what the
// login prints: see [AwaitRelay].
func RelayCommand(port uint16) string {
	return runQtd + `echo; echo ` + relayLine + `; exec "$q" relay ` + strconv.Itoa(int(port)) + `'`
}

// AwaitRelay reads what a login to a host prints before RelayCommand runs.
func AwaitRelay(host string, r *bufio.Reader) error {
	_, prefix, err := find(r, relayLine, missingLine)
	if err == nil && prefix != relayLine {
		err = noGrant(host, prefix)
	}
	return err
}

// missingLine is the line that it prints if there is no qtd.
const missingLine = "quicterm-missing"

// OpenVariable is the environment variable that has the first bytes of a carrier's stream in
// base64, as they are in the line of OpenLine.
const OpenVariable = "QUICTERM_OPEN"

// maxVariable bounds the length of its value: a word of csh has at most 1024 bytes.
const maxVariable = 768

// isPublic reports whether every account of the server may see the first bytes of a stream:
// while a command starts, its arguments are visible to all. Requests that are not known to be
// harmless are not public.
func isPublic(first []byte) bool {
	for r := bytes.NewReader(first); r.Len() > 0; {
		m, err := wire.Read(r, wire.MaxMessage)
		if err != nil {
			return false
		}
		var hello wire.Hello
		var attach wire.Attach
		switch {
		case m.Type == wire.TypeList:
		case m.Type == wire.TypeHello && m.Decode(&hello) == nil && len(hello.Keys) == 0:
		case m.Type == wire.TypeAttach && m.Decode(&attach) == nil:
			if attach.Dir != "" {
				return false
			}
			// The server runs the command of an Attach, and shows it as it shows this one.
			if len(attach.Input) > 0 {
				return false
			}
			for _, v := range attach.Env {
				if !slices.Contains(publicVariables, v[0]) {
					return false
				}
			}
		default:
			return false
		}
	}
	return len(first) > 0
}

// publicVariables are environment variables that are not secret. Others whose names begin with
// LC_ may be: they get through most sshds.
var publicVariables = []string{
	"TERM", "COLORTERM", "LANG", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION",
	"LC_MEASUREMENT", "LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE",
	"LC_TERMINAL", "LC_TERMINAL_VERSION", "LC_TIME",
}

// openPrefix begins the line by which a client opens a carrier over standard streams.
const openPrefix = "quicterm-open "

// maxOpen bounds the length of that line in bytes: a Hello and the longest request, in base64.
const maxOpen = 1 << 20

// OpenLine returns the first bytes of a carrier's stream as a line, with its end.
func OpenLine(first []byte) []byte {
	line := base64.StdEncoding.AppendEncode([]byte(openPrefix), first)
	return append(line, '\n')
}

// ReadOpen reads the line of OpenLine. It returns the bytes in it, and a reader of what comes
// behind it.
func ReadOpen(r io.Reader) (first []byte, rest io.Reader, err error) {
	lines := bufio.NewReader(r)
	line, err := lines.ReadSlice(' ')
	if err != nil || string(line) != openPrefix {
		return nil, nil, errors.New("there is no client of quicterm on standard input")
	}
	line = nil
	for part, long := []byte(nil), true; long; {
		if part, long, err = lines.ReadLine(); err != nil {
			return nil, nil, fmt.Errorf("first line of the client: %w", err)
		}
		if line = append(line, part...); len(line) > maxOpen {
			return nil, nil, errors.New("first line of the client: too long")
		}
	}
	first, err = base64.StdEncoding.AppendDecode(nil, line)
	if err != nil {
		return nil, nil, fmt.Errorf("first line of the client: %w", err)
	}
	return first, lines, nil
}

// Early returns the first bytes that OpenVariable has, or none if it has no such value: then they
// are awaited on standard input.
func Early(value string) []byte {
	first, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return nil
	}
	return first
}
