//go:build !linux

package netem

import "time"

func nap(d time.Duration) { time.Sleep(d) }
