//go:build race

package quicterm

const raceEnabled = true
