//go:build linux && !amd64 && !arm64

package confine

import "errors"

// seccomp returns an error: the filter is written for other machines.
func seccomp() error { return errors.New("seccomp: there is no filter for this machine") }
