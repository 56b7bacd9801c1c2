package auth

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

const (
	// SFTPCommand is the hidden command of qtd that serves the files of an account, as the program of a side pipe.
	SFTPCommand = "sftp"

	// NoSFTP is [Permissions.SFTP] where sshd has no Subsystem sftp.
	NoSFTP = "none"

	// internalSFTP is a command by which sshd confines a login to its files.
	internalSFTP = "internal-sftp"
)

// OnlyFiles reports whether the command that the login must run is sshd's own sftp server.
func (p *Permissions) OnlyFiles() bool {
	rest, ok := strings.CutPrefix(p.Command, internalSFTP)
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// Files returns the flags of sftp-server(8) that hold for the files of the login, -R, -u and -d with their values as
// arguments of their own, or why it may move no files. Those about the log mean nothing here.
func (p *Permissions) Files() (flags []string, err error) {
	server := p.SFTP
	switch {
	case p.Guest():
		return nil, errors.New("a guest may move no files")
	case p.Command != "" && !p.OnlyFiles():
		return nil, errors.New("no files may be moved: the key, or the server's sshd_config, forces a command")
	case server == NoSFTP:
		return nil, errors.New("no files may be moved: the server's sshd_config has no Subsystem sftp")
	case p.Command != "":
		server = p.Command
	case server == "":
		return nil, nil
	}
	refused := func(what string) error {
		return fmt.Errorf("no files may be moved: the server's sftp has %.100q, which quicterm does not support", what)
	}
	words := strings.Fields(server)
	if len(words) == 0 {
		return nil, refused(server)
	}
	if base := path.Base(words[0]); base != internalSFTP && base != "sftp-server" || strings.ContainsAny(server, `"'\`) {
		return nil, refused(server)
	}
	for words = words[1:]; len(words) > 0; {
		word := words[0]
		words = words[1:]
		if len(word) < 2 || word[0] != '-' {
			return nil, refused(word)
		}
		for letters := word[1:]; letters != ""; {
			letter := letters[:1]
			letters = letters[1:]
			if letter == "e" {
				continue
			}
			if letter == "R" {
				flags = append(flags, "-R")
				continue
			}
			value := letters
			if letters = ""; value == "" && len(words) > 0 {
				value, words = words[0], words[1:]
			}
			switch {
			case value == "", !strings.Contains("fldu", letter), letter == "d" && strings.Contains(value, "%"):
				return nil, refused("-" + letter)
			case letter == "d", letter == "u":
				flags = append(flags, "-"+letter, value)
			}
		}
	}
	return flags, nil
}
