//go:build !unix

package reach

// lock does nothing: if two clients change a file at once, one change may be lost.
func lock(string) (unlock func(), err error) { return func() {}, nil }
