package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"testing"
)

// statementOf returns the statement of proof number n of a session and an instance.
func statementOf(session, instance byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{session, instance}, n)
}

// The proof on the wire: a change here is a change of the protocol.
func TestProofGolden(t *testing.T) {
	got := Proof(make([]byte, secretSize), []byte("statement"))
	const want = "dfc4bada72d472df7dec0d7356c5b1d44f954f3f8e38ae7b9533b9c62fdbf5b3"
	if hex.EncodeToString(got[:]) != want {
		t.Errorf("got %x, want %s", got, want)
	}
}

// The same for the keys that seal a carrier.
func TestSealKeysGolden(t *testing.T) {
	fromClient, fromHolder := SealKeys(make([]byte, secretSize), []byte("statement"))
	const wantClient, wantHolder = "e03e5368dcb0b06636518e6111a9751aef5b1678f5b3d12b719f0db901de5dd6",
		"bdf8d35cc4877a57fb371469f37f3a12c52a76f20e33ead5157891d84637f6ac"
	if got := hex.EncodeToString(fromClient); got != wantClient {
		t.Errorf("what the client sends is sealed with %s, want %s", got, wantClient)
	}
	if got := hex.EncodeToString(fromHolder); got != wantHolder {
		t.Errorf("what the holder sends is sealed with %s, want %s", got, wantHolder)
	}
}

func TestSecretsDiffer(t *testing.T) {
	a, b := must(NewSecret()), must(NewSecret())
	if len(a) != secretSize || bytes.Equal(a, b) {
		t.Errorf("secrets %x and %x, want two of %d bytes", a, b, secretSize)
	}
}

// verify passes a valid proof to a verifier.
func verify(v *Verifier, secret []byte, n uint64) bool {
	statement := statementOf(1, 1, n)
	return v.Verify(n, statement, Proof(secret, statement))
}

// Each number is accepted once, in any order, within the window.
func TestReplay(t *testing.T) {
	const most = math.MaxUint64
	type step struct {
		n    uint64
		want bool
	}
	for _, test := range []struct {
		name  string
		steps []step
	}{
		{"in order", []step{{1, true}, {2, true}, {3, true}}},
		{"again", []step{{1, true}, {1, false}, {2, true}, {1, false}, {2, false}}},
		{"raced", []step{{3, true}, {1, true}, {2, true}, {2, false}, {3, false}, {1, false}, {4, true}}},
		{"zero", []step{{0, false}, {1, true}, {0, false}}},
		{"the first is far", []step{{1000, true}, {937, true}, {936, false}, {999, true}}},
		{"the last in the window", []step{{1, true}, {64, true}, {1, false}, {2, true}}},
		{"late, in the window", []step{{64, true}, {1, true}, {1, false}}},
		{"late, out of the window", []step{{65, true}, {1, false}, {2, true}}},
		{"moved by one less than the window", []step{{10, true}, {73, true}, {10, false}, {11, true}}},
		{"moved by the window", []step{{10, true}, {74, true}, {10, false}, {11, true}, {73, true}}},
		{"moved far", []step{{10, true}, {1 << 40, true}, {10, false}, {1<<40 - 63, true}, {1<<40 - 64, false}}},
		{"the highest number", []step{{1, true}, {most, true}, {most, false}, {0, false}, {1, false}, {most - 63, true}, {most - 64, false}}},
	} {
		secret := must(NewSecret())
		v := NewVerifier(secret)
		for i, s := range test.steps {
			if got := verify(v, secret, s.n); got != s.want {
				t.Errorf("%s: number %d, step %d: got %v, want %v", test.name, s.n, i, got, s.want)
			}
		}
	}
}

// An invalid proof is refused, and does not use its number up.
func TestFalseProof(t *testing.T) {
	secret := must(NewSecret())
	v := NewVerifier(secret)
	sound := Proof(secret, statementOf(1, 1, 1))
	for i := range sound {
		changed := sound
		changed[i] ^= 1
		if v.Verify(1, statementOf(1, 1, 1), changed) {
			t.Errorf("accepted with byte %d changed", i)
		}
	}
	for name, proof := range map[string][sha256.Size]byte{
		"nothing":                   {},
		"another secret":            Proof(must(NewSecret()), statementOf(1, 1, 1)),
		"no secret":                 Proof(nil, statementOf(1, 1, 1)),
		"another session":           Proof(secret, statementOf(2, 1, 1)),
		"another instance":          Proof(secret, statementOf(1, 2, 1)),
		"another number":            Proof(secret, statementOf(1, 1, 2)),
		"a hash without the secret": sha256.Sum256(statementOf(1, 1, 1)),
	} {
		if v.Verify(1, statementOf(1, 1, 1), proof) {
			t.Errorf("accepted the proof of %s", name)
		}
	}
	if v.Verify(1<<60, statementOf(1, 1, 1<<60), sound) {
		t.Error("accepted a proof with the number of another one")
	}
	if !v.Verify(1, statementOf(1, 1, 1), sound) {
		t.Error("refused the valid proof after invalid ones")
	}
}

// The verifier agrees with a model that remembers every number. The input has, for each
// proof, the distance of its number from the one before and whether it is valid.
func FuzzVerifier(f *testing.F) {
	secret := make([]byte, secretSize)
	f.Fuzz(func(t *testing.T, input []byte) {
		v := NewVerifier(secret)
		used := make(map[uint64]bool)
		var n, highest uint64
		for len(input) >= 2 {
			far, distance := input[0], uint64(int64(int8(input[1])))
			input = input[2:]
			n += distance << (far >> 2 & 0x3f)
			statement := statementOf(1, 1, n)
			proof := Proof(secret, statement)
			want := n > 0 && !used[n] && (n > highest || highest-n < replayWindow)
			if far&1 != 0 {
				proof[far>>1&0x1f] ^= 0x80
				want = false
			}
			if got := v.Verify(n, statement, proof); got != want {
				t.Fatalf("number %d, highest %d, used %v: got %v, want %v", n, highest, used[n], got, want)
			}
			if want {
				used[n] = true
				highest = max(highest, n)
			}
		}
	})
}
