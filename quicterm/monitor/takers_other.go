//go:build !linux

package monitor

import "net/netip"

// takers returns nothing: the system does not tell.
func takers(string, uint16, func(string, netip.AddrPort) bool) []taker { return nil }

// processOf returns 0: the system does not tell.
func processOf(string) int { return 0 }
