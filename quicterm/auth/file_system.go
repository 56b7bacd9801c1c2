//go:build !js

package auth

import "syscall"

// openAtOnce opens what is no file without waiting, and makes no terminal that of this process.
const openAtOnce = syscall.O_NONBLOCK | syscall.O_NOCTTY
