//go:build linux || darwin

package sshd

import (
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

	principalsProgram bool // AuthorizedPrincipalsCommand, which is not asked
}

// SameFiles reports whether others name the same files: all but the program.
func (s *Sources) SameFiles(others *Sources) bool {
	return slices.Equal(s.Files, others.Files) && s.Authorities == others.Authorities &&
		s.CAAlgorithms == others.CAAlgorithms && s.Principals == others.Principals && s.Lax == others.Lax
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
