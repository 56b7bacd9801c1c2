// Package version knows which version of quicterm this is.
package version

import "runtime/debug"

// String returns what the Go toolchain knows of the source: a release's tag, or
// the commit.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
