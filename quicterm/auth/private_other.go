//go:build !unix

package auth

import "os"

// unprotected reports false: the mode of a file does not tell who may read it.
func unprotected(os.FileInfo) bool { return false }
