// Package version tells the version of this build of quicterm.
package version

import "runtime/debug"

// String returns the version that the Go toolchain recorded: the tag of a release or a
// pseudo-version of a commit, or "devel" if it recorded none.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
