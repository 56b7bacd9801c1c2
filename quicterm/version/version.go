// Package version tells the version of this build of quicterm.
package version

import "runtime/debug"

// String returns the version of this program.
func String() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return Of(info)
}

const unknown = "devel"

// Of returns the version that the Go toolchain recorded in a program: the tag of a release or a
// pseudo-version of a commit, or "devel" if it recorded none.
func Of(info *debug.BuildInfo) string {
	if info.Main.Version == "" {
		return unknown
	}
	return info.Main.Version
}
