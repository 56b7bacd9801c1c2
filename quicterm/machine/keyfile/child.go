//go:build linux || darwin

package keyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Command is the argument that makes the daemon's executable a reader of keys.
const Command = "read-keys"

// Main is the main function of a child: it answers one request, on standard input and
// output. It has no other descriptors.
func Main() error {
	a, err := serve()
	if err != nil {
		a = &answer{Problems: short("read keys: " + err.Error())}
	}
	// The end of the answer, for which the daemon waits, comes before that of the process.
	return errors.Join(json.NewEncoder(os.Stdout).Encode(a), os.Stdout.Close())
}

func serve() (*answer, error) {
	for resource, limit := range limits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return nil, fmt.Errorf("limit: %w", err)
		}
	}
	var req request
	if err := json.NewDecoder(os.Stdin).Decode(&req); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	// The daemon keeps standard input open until it has the answer: when it has given us
	// up or has ended, nothing is left to do, whatever file system a thread waits for.
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := become(req.UID, req.GID, req.Groups); err != nil {
		return nil, fmt.Errorf("become user id %d: %w", req.UID, err)
	}
	return req.search()
}

// limits bound what a child may use: CPU time in seconds, which is 100 times what 16 files of the largest size take,
// no file to write to, no core dump that would show what it read. There is none for memory: the program maps much
// that it never uses, and what is read bounds it.
var limits = map[int]uint64{unix.RLIMIT_CPU: 10, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 64}

// become gives this process the rights of an account, and no way back. A process that is the account's already keeps
// its rights. The process is untraceable when the account could trace it: the kernel makes it so with the change of
// the user id, and we do it for kernels that are told not to (suid_dumpable in proc_sys_fs(5)).
func become(uid, gid uint32, groups []uint32) error {
	if os.Geteuid() == int(uid) {
		return hideProcess()
	}
	ids := make([]int, len(groups))
	for i, id := range groups {
		ids[i] = int(id)
	}
	if err := errors.Join(
		hideProcess(), syscall.Setgroups(ids), syscall.Setgid(int(gid)), syscall.Setuid(int(uid)), hideProcess(),
	); err != nil {
		return err
	}
	if os.Getuid() != int(uid) || os.Geteuid() != int(uid) || os.Getegid() != int(gid) ||
		uid != 0 && syscall.Setuid(0) == nil {
		return unix.EPERM
	}
	return nil
}
