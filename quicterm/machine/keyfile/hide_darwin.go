package keyfile

import "os"

// hideProcess does nothing: on macOS a process whose user id was changed cannot be traced
// by the account.
func hideProcess() error { return nil }

// program returns the program of this process.
func program() (string, error) { return os.Executable() }
