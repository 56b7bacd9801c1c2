//go:build linux || darwin

// Package push tells devices of a session by Web Push (RFC 8030), with the rights of the session's account. A device is a
// browser that is remembered: it has subscribed at a push service, and has handed that over with an attach. Nothing is
// kept on disk, and nothing is sent without a subscription.
//
// A push service gets messages that only the device can open (RFC 8291), all of one size, and a signature of a key that the
// device has made for this (RFC 8292). What it is sent is decided by who calls Send; to whom, by the file of the device's
// key: one that was revoked gets nothing more.
package push
