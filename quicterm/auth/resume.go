package auth

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
)

// secretSize is the size of a resume secret, in bytes.
const secretSize = sha256.Size

// NewSecret returns a new resume secret.
func NewSecret() ([]byte, error) {
	secret := make([]byte, secretSize)
	_, err := rand.Read(secret)
	return secret, err
}

// Proof returns the proof for a statement, which only a holder of the secret can make.
func Proof(secret, statement []byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("quicterm resume\x00"))
	mac.Write(statement)
	return [sha256.Size]byte(mac.Sum(nil))
}

// SealKeys returns the keys that seal the carrier which begins with the Resume with a
// statement: one for what the client sends, and one for what the holder sends.
func SealKeys(secret, statement []byte) (fromClient, fromHolder []byte) {
	key := func(side string) []byte {
		k, err := hkdf.Expand(sha256.New, secret, "quicterm seal\x00"+side+string(statement), sha256.Size)
		if err != nil {
			panic(err) // for keys of more than 255 hashes only
		}
		return k
	}
	return key("\x00"), key("\x01")
}

// A Verifier checks the resumes of one instance. It accepts each number once, and only numbers less than replayWindow
// below the highest accepted one. Only one goroutine may use it at a time.
type Verifier struct {
	secret  []byte
	highest uint64
	seen    uint64 // bit i: number highest-i was accepted
}

// replayWindow is how many numbers late a proof may be: more dials than a client races at once.
const replayWindow = 64

// NewVerifier returns a verifier of the proofs with a secret. Numbers start at 1.
func NewVerifier(secret []byte) *Verifier { return &Verifier{secret: secret} }

// SealKeys is as the function of that name, with the verifier's secret.
func (v *Verifier) SealKeys(statement []byte) (fromClient, fromHolder []byte) {
	return SealKeys(v.secret, statement)
}

// Verify reports whether a proof of a statement is valid and its number n was not used. If so, it uses the number up.
func (v *Verifier) Verify(n uint64, statement []byte, proof [sha256.Size]byte) bool {
	want := Proof(v.secret, statement)
	if !hmac.Equal(want[:], proof[:]) || n == 0 {
		return false
	}
	if n > v.highest {
		shift := n - v.highest
		if shift >= replayWindow {
			v.seen = 0
		} else {
			v.seen <<= shift
		}
		v.seen |= 1
		v.highest = n
		return true
	}
	age := v.highest - n
	if age >= replayWindow || v.seen&(1<<age) != 0 {
		return false
	}
	v.seen |= 1 << age
	return true
}
