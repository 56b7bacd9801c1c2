// Package hub is what a hub, the hosts behind it and the people who reach them agree on: names, subjects of NATS, the text
// that a login signs, and the messages of a relayed stream. It is pure: it opens nothing and knows no time.
//
// A hub sees keys, names of hosts, addresses and numbers of bytes. What passes through it is TLS between a client and a
// daemon, which prove themselves to each other as on a direct connection.
//
// # Subjects
//
// HOST is Token of a host's name, USER a UserID, STREAM a StreamID, each without a dot. Permissions at the hub fix HOST for
// a host and USER for a person, so the subject says who has sent a message, and the message need not.
//
//	hub.announce.HOST          host to hub      an Entry
//	hub.list.USER              person to hub    a ListRequest
//	hub.answer.USER.ID         hub to person    a Page of entries
//	hub.call.HOST.USER         person to host   a Call: opens a stream
//	hub.to.HOST.USER.STREAM    person to host   messages of the stream
//	hub.from.HOST.USER.STREAM  host to person   messages of the stream
package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// MaxMessage bounds the payload of a message in bytes: 32 KiB of a stream and what is before them.
	MaxMessage = MaxData + frameHeader

	// MaxStreams is the number of relayed streams that one person has to one host, and that one connection of a person has.
	MaxStreams = 64
)

// A UserID says which person it is: the first half of the SHA-256 of the public key.
type UserID [16]byte

// UserIDOf returns the ID of the person with a key.
func UserIDOf(key ssh.PublicKey) (id UserID) {
	sum := sha256.Sum256(key.Marshal())
	copy(id[:], sum[:])
	return id
}

// String returns the ID in hexadecimal digits, as it is in subjects.
func (id UserID) String() string { return hex.EncodeToString(id[:]) }

// A StreamID names a stream of a person, who draws it at random.
type StreamID [16]byte

// String returns the ID in hexadecimal digits, as it is in subjects.
func (id StreamID) String() string { return hex.EncodeToString(id[:]) }

// Token returns the name of a host as a part of a subject. No two names have the same.
func Token(name string) string { return strings.ReplaceAll(name, ".", "_") }

// AnnounceSubject is where a host announces its entry.
func AnnounceSubject(host string) string { return "hub.announce." + Token(host) }

// ListSubject is where a person asks for the hosts.
func ListSubject(user string) string { return "hub.list." + user }

// AnswerSubject is where the hub answers a question with an ID.
func AnswerSubject(user, id string) string { return "hub.answer." + user + "." + id }

// CallSubject is where a person opens a stream to a host.
func CallSubject(host, user string) string { return "hub.call." + Token(host) + "." + user }

// ToSubject is where a person sends the messages of a stream.
func ToSubject(host, user, stream string) string {
	return "hub.to." + Token(host) + "." + user + "." + stream
}

// FromSubject is where a host sends the messages of a stream.
func FromSubject(host, user, stream string) string {
	return "hub.from." + Token(host) + "." + user + "." + stream
}

// Any stands for any value of a part of a subject.
const Any = "*"

var errSubject = errors.New("hub: a subject of another form")

// ParseAnnounce returns the token of the host of an AnnounceSubject.
func ParseAnnounce(subject string) (token string, err error) {
	token, ok := strings.CutPrefix(subject, "hub.announce.")
	if !ok || token == "" || strings.Contains(token, ".") {
		return "", errSubject
	}
	return token, nil
}

// ParseAsker returns whose question it is that came on a ListSubject.
func ParseAsker(subject string) (UserID, error) {
	user, ok := strings.CutPrefix(subject, "hub.list.")
	if !ok {
		return UserID{}, errSubject
	}
	id, err := parseID(user)
	return UserID(id), err
}

// ParseCaller returns who has called by a CallSubject.
func ParseCaller(subject string) (UserID, error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 4 || parts[0] != "hub" || parts[1] != "call" {
		return UserID{}, errSubject
	}
	id, err := parseID(parts[3])
	return UserID(id), err
}

// ParseTo returns the person and the stream of a ToSubject.
func ParseTo(subject string) (UserID, StreamID, error) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 || parts[0] != "hub" || parts[1] != "to" {
		return UserID{}, StreamID{}, errSubject
	}
	user, err := parseID(parts[3])
	if err != nil {
		return UserID{}, StreamID{}, err
	}
	stream, err := parseID(parts[4])
	return UserID(user), StreamID(stream), err
}

// parseID reads 16 bytes in small hexadecimal digits.
func parseID(text string) (id [16]byte, err error) {
	if len(text) != 2*len(id) || strings.ToLower(text) != text {
		return id, errSubject
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil {
		return id, fmt.Errorf("%w: %w", errSubject, err)
	}
	return id, nil
}
