//go:build android || !(linux || darwin)

package reach

func daemonRuns() bool { return false }
