//go:build linux || darwin

package sshd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sources are where the keys of an account come from, with the tokens of sshd_config(5).
type Sources struct {
	Files          []string // AuthorizedKeysFile
	Authorities    string   // TrustedUserCAKeys; empty for none
	CAAlgorithms   string
	Principals     string // AuthorizedPrincipalsFile; empty for none
	Lax            bool   // StrictModes no
	Program        string // AuthorizedKeysCommand; empty for none
	ProgramAccount string // AuthorizedKeysCommandUser

	PrincipalsProgram string // AuthorizedPrincipalsCommand, which is not run; empty for none
}

// SameFiles reports whether others name the same files: all but the programs.
func (s *Sources) SameFiles(others *Sources) bool {
	return slices.Equal(s.Files, others.Files) && s.Authorities == others.Authorities &&
		s.CAAlgorithms == others.CAAlgorithms && s.Principals == others.Principals && s.Lax == others.Lax &&
		(s.PrincipalsProgram == "") == (others.PrincipalsProgram == "")
}

// SplitArgs splits a command into its arguments as sshd does: by white space, outside quotes.
func SplitArgs(command string) (args []string, err error) {
	var arg strings.Builder
	var quote byte
	inside := false // an argument
	for i := 0; i < len(command); i++ {
		c := command[i]
		switch {
		case c == '\\' && i+1 < len(command) && strings.IndexByte(`'"\ `, command[i+1]) >= 0:
			i++
			arg.WriteByte(command[i])
			inside = true
		case quote == 0 && (c == '"' || c == '\''):
			quote, inside = c, true
		case c == quote:
			quote = 0
		case quote == 0 && (c == ' ' || c == '\t'):
			if inside {
				args = append(args, arg.String())
				arg.Reset()
			}
			inside = false
		default:
			arg.WriteByte(c)
			inside = true
		}
	}
	if inside {
		args = append(args, arg.String())
	}
	if quote != 0 || len(args) == 0 {
		return nil, fmt.Errorf("%q: not a command", command)
	}
	return args, nil
}

// ProgramArgs returns the arguments of a command, of which all but the first one may have tokens.
func ProgramArgs(command string, tokens map[byte]string) ([]string, error) {
	args, err := SplitArgs(command)
	if err != nil {
		return nil, err
	}
	for i := range args[1:] {
		if args[i+1], err = Expand(args[i+1], tokens); err != nil {
			return nil, err
		}
	}
	return args, nil
}

// Expand replaces the tokens of sshd_config(5) in a text by their values, and %% by a percent sign. An
// unknown token is an error.
func Expand(text string, tokens map[byte]string) (string, error) {
	var expanded strings.Builder
	for {
		before, after, found := strings.Cut(text, "%")
		expanded.WriteString(before)
		if !found {
			return expanded.String(), nil
		}
		if after == "" {
			return "", errors.New("% at the end is not a token: %% is a percent sign")
		}
		value, known := tokens[after[0]]
		if after[0] == '%' {
			value, known = "%", true
		}
		if !known {
			return "", fmt.Errorf("%%%c is not a token that is known here", after[0])
		}
		expanded.WriteString(value)
		text = after[1:]
	}
}
