package quic

import (
	"errors"
	"strings"
	"testing"

	quicgo "github.com/quic-go/quic-go"
)

// The reason that a peer gives for closing is shown quoted, and cut.
func TestReasonsAreQuoted(t *testing.T) {
	const evil = "\x1b]0;\u202e\a\x9b"
	for _, err := range []error{
		&quicgo.ApplicationError{Remote: true, ErrorMessage: evil},
		&quicgo.TransportError{Remote: true, ErrorCode: quicgo.ConnectionRefused, ErrorMessage: evil},
	} {
		got := quoted(err)
		if text := got.Error(); !strings.Contains(text, `"\x1b]0;\u202e\a\x9b"`) {
			t.Errorf("%T is shown as %q", err, text)
		}
		if Refused(got) != Refused(err) || PeerGone(got) != PeerGone(err) {
			t.Errorf("%T means something else: %v", err, got)
		}
	}
	long := quoted(&quicgo.ApplicationError{Remote: true, ErrorMessage: strings.Repeat("x", 9999)})
	if n := len(long.Error()); n > maxReason+100 {
		t.Errorf("a long reason is shown in %d bytes", n)
	}
	for _, err := range []error{nil, errors.New("x"), &quicgo.TransportError{ErrorMessage: "ours"}} {
		if got := quoted(err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}
