//go:build unix

package auth

import (
	"os"
	"syscall"
)

// unprotected reports whether a private key file of our account may be read or written by
// others. Files of other accounts are their owners' matter, as to ssh.
func unprotected(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 != 0
}
