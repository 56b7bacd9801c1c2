// Package install puts qtd into an account's ~/.local/bin on another machine.
// It needs one login, for example by ssh, that runs a command in the account's login shell:
//
//	client                            host
//	  Command                     ▶   sh, in any login shell, reads a script
//	  the script, in one line     ▶   runs it
//	                              ◀   its platform, and the qtd that is there
//	  size, checksum, version,    ▶   writes the program to a temporary file, checks it,
//	  the program                     and renames it
//	                              ◀   that it is done, or what failed
//
// The script prints lines that begin with a mark. All else that a login prints is ignored, and
// nothing of what the host prints is returned without [wire.Printable].
package install

import (
	"fmt"
	"strings"
)

// A Report says what was found and done on a host.
type Report struct {
	File     string // qtd there
	Platform Platform
	Copied   bool
	Version  string // of File, as it says itself
	Before   string // the same of the file that was there before; empty if there was none
	Checked  bool   // the host has computed the checksum of what was copied
	First    string // another qtd that the account's PATH has, or empty
}

// Install copies a qtd for the host's platform, unless the host has the same file already. It waits until the process
// ends, and closes it. find returns the program to copy, and copying is called before it is copied.
func Install(p *Process, find func(Platform) (*Binary, error), copying func(*Binary)) (*Report, error) {
	d := begin(p, script, loginTimeout)
	defer d.end()
	report := new(Report)
	var sum string
	for ready := false; !ready; {
		key, text, err := d.next()
		if err != nil {
			return nil, err
		}
		switch key {
		case "platform":
			if report.Platform, err = ParsePlatform(text); err != nil {
				return nil, err
			}
		case "file":
			report.File = text
		case "has":
			sum, report.Before, _ = strings.Cut(text, " ")
		case "path":
			report.First = text
		case "ready":
			ready = true
		}
	}
	if report.First == report.File {
		report.First = ""
	}
	binary, err := find(report.Platform)
	if err != nil {
		return nil, err
	}
	if binary.Platform != report.Platform {
		return nil, fmt.Errorf("%s is for %v, and the host is %v", binary.File, binary.Platform, report.Platform)
	}
	report.Version = "qtd " + binary.Version
	if sum == binary.sum() && report.Before == report.Version {
		return report, nil
	}
	copying(binary)
	d.send(binary, report.Version)
	for key := ""; key != "done"; {
		if key, sum, err = d.next(); err != nil {
			return nil, err
		}
	}
	report.Copied, report.Checked = true, sum == binary.sum()
	return report, nil
}
