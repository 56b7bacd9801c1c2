package sshd

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A listener is a process of an sshd that listens.
type listener struct {
	pid  string
	exe  string
	port bool // it listens at the usual port
}

// usualPort is that of sshd: of several that run, the one there is the machine's.
const usualPort = 22

// listeners returns the processes of root that listen and whose program is sshd. If files is not nil, it must be one of
// them. Those of containers have another root directory or other sockets.
func listeners(files []string) (found []listener, err error) {
	var sockets map[string]uint16 // the table takes the kernel milliseconds
	root, err := os.Stat("/")
	if err != nil {
		return nil, err
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		var stat syscall.Stat_t
		if syscall.Stat(dir, &stat) != nil || stat.Uid != 0 {
			continue
		}
		l := listener{pid: filepath.Base(dir)}
		l.exe, err = os.Readlink(dir + "/exe")
		if errors.Is(err, fs.ErrPermission) {
			if name, _ := os.ReadFile(dir + "/comm"); string(name) == "sshd\n" {
				return nil, fmt.Errorf("process %s cannot be looked at: %w", l.pid, err)
			}
			continue
		}
		l.exe = strings.TrimSuffix(l.exe, " (deleted)")
		if err != nil || files == nil && filepath.Base(l.exe) != "sshd" || files != nil && !slices.Contains(files, l.exe) {
			continue
		}
		if its, err := os.Stat(dir + "/root"); err != nil || !os.SameFile(root, its) {
			continue
		}
		descriptors, err := os.ReadDir(dir + "/fd")
		if errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("process %s cannot be looked at: %w", l.pid, err)
		}
		if sockets == nil {
			sockets = listening()
		}
		listens := false
		for _, fd := range descriptors {
			target, _ := os.Readlink(dir + "/fd/" + fd.Name())
			if port, ok := sockets[target]; ok {
				listens, l.port = true, l.port || port == usualPort
			}
		}
		if listens {
			found = append(found, l)
		}
	}
	return found, nil
}

// listening returns the ports of the TCP sockets that listen, by what descriptors of them are links to: see
// proc_net_tcp in the kernel's documentation.
func listening() map[string]uint16 {
	sockets := make(map[string]uint16)
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 10 || fields[3] != "0A" {
				continue
			}
			_, hex, _ := strings.Cut(fields[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			if err == nil {
				sockets["socket:["+fields[9]+"]"] = uint16(port)
			}
		}
		f.Close()
	}
	return sockets
}

// startOf returns when a process was started, as proc_pid_stat(5) has it, or nothing if there is none.
func startOf(pid string) string {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, _ := cutLast(string(stat), ")")
	if fields := strings.Fields(rest); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// runs reports whether the process still runs whose options these are.
func (i *Installation) runs() bool { return i.started != "" && startOf(i.process) == i.started }

// running returns the sshd that runs, or nil. The error says why its options cannot be told.
func running(files []string) (*Installation, error) {
	found, err := listeners(files)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(found, func(l listener) bool { return l.port }) {
		found = slices.DeleteFunc(found, func(l listener) bool { return !l.port })
	}
	var first *Installation
	for _, l := range found {
		cmdline, err := os.ReadFile("/proc/" + l.pid + "/cmdline")
		if err != nil || len(cmdline) == 0 {
			continue // it has ended
		}
		args, joined, ok, err := parseTitle(string(cmdline))
		if err == nil && !ok {
			continue
		}
		one := &Installation{File: l.exe, From: "process " + l.pid, process: l.pid, started: startOf(l.pid)}
		if err == nil {
			one.Options, err = parseOptions(args, joined)
		}
		if err != nil {
			return nil, fmt.Errorf("the options of process %s cannot be told: %w", l.pid, err)
		}
		if first != nil && (first.File != one.File || !slices.Equal(first.Options, one.Options)) {
			return nil, fmt.Errorf("%s and %s listen with other options, "+
				"and port %d does not tell which of them is this machine's", first.From, one.From, usualPort)
		}
		if first == nil {
			first = one
		}
	}
	return first, nil
}
