package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// A missing field has its zero value: other versions have fewer or more fields.
func TestBodiesWithoutFields(t *testing.T) {
	for _, g := range goldenBodies {
		m, err := New(empty(g.body))
		if err != nil {
			t.Errorf("New of an empty %T: %v", g.body, err)
			continue
		}
		got := empty(g.body)
		if err := m.Decode(got); err != nil {
			t.Errorf("%T with zero values: %v", g.body, err)
		}
		if !isCBOR(g.body) {
			continue
		}
		if !reflect.DeepEqual(got, empty(g.body)) {
			t.Errorf("%T with zero values came as %+v", g.body, got)
		}
		if err := (Message{Type: g.body.Type(), Payload: unhex("a0")}).Decode(got); err != nil {
			t.Errorf("%T without fields: %v", g.body, err)
		}
		if !reflect.DeepEqual(got, empty(g.body)) {
			t.Errorf("%T without fields came as %+v", g.body, got)
		}
	}
}

// Names of files and values of variables need not be UTF-8.
func TestTextsOfAnyBytes(t *testing.T) {
	want := &Attach{Command: "cat caf\xe9", Env: [][2]string{{"LC_X", "\xff"}}}
	m, err := New(want)
	if err != nil {
		t.Fatal(err)
	}
	got := new(Attach)
	if err := m.Decode(got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Decode = %+v, %v; want %+v", got, err, want)
	}
}

func TestResumeStatement(t *testing.T) {
	r := Resume{UID: 1000, ID: testID, Instance: testInstance, Boot: testBoot, N: 7, Proof: testProof}
	want := unhex("000003e8 000102030405060708090a0b0c0d0e0f 0f0e0d0c0b0a09080706050403020100 " +
		"b0b1b2b3b4b5b6b7 0000000000000007")
	if got := r.Statement(); !bytes.Equal(got, want) {
		t.Errorf("Statement() = %x, want %x", got, want)
	}
	m, err := New(&r)
	if err != nil {
		t.Fatal(err)
	}
	if want = append(want, testProof[:]...); !bytes.Equal(m.Payload, want) || len(want) != ResumeSize {
		t.Errorf("encodes to %x, want the statement and the proof, %d bytes", m.Payload, ResumeSize)
	}
}

// The size is the only thing that the daemon, which may run as root, checks of a Resume.
func TestResumeHasOneSize(t *testing.T) {
	for n := range 2 * ResumeSize {
		err := Message{Type: TypeResume, Payload: make([]byte, n)}.Decode(new(Resume))
		if ok := n == ResumeSize; ok != (err == nil) {
			t.Errorf("resume of %d bytes: %v", n, err)
		}
	}
}

func TestInfo(t *testing.T) {
	if raw, err := EncodeInfo(testInfo); err != nil || !bytes.Equal(raw, rawInfo) {
		t.Errorf("EncodeInfo = %x, %v; want %x", []byte(raw), err, []byte(rawInfo))
	}
	if info, err := DecodeInfo(rawInfo); err != nil || !reflect.DeepEqual(info, testInfo) {
		t.Errorf("DecodeInfo = %+v, %v; want %+v", info, err, testInfo)
	}
	for n := range rawInfo {
		if info, err := DecodeInfo(rawInfo[:n]); err == nil {
			t.Errorf("the first %d bytes decode to %+v", n, info)
		}
	}
}

// A holder's answer has room for the longest Info: members that do not fit are counted.
func TestInfoOfManyMembers(t *testing.T) {
	info := Info{Name: strings.Repeat("n", MaxName), Command: strings.Repeat("c", MaxSummary)}
	for range 300 {
		info.Members = append(info.Members, Member{Client: strings.Repeat("a", 60), Role: RoleWatch, Since: 1700000000})
	}
	raw, err := EncodeInfo(info)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(&State{Memory: 1 << 63, Since: -1 << 63, Name: info.Name, Info: raw})
	if err != nil || len(m.Payload) > MaxAnswer {
		t.Fatalf("a state of %d bytes, %v; want at most %d", len(m.Payload), err, MaxAnswer)
	}
	got, err := DecodeInfo(raw)
	if err != nil || len(got.Members)+got.More != 300 || len(got.Members) < 20 {
		t.Errorf("%d members and %d more, %v; want 300", len(got.Members), got.More, err)
	}
}

func TestRoles(t *testing.T) {
	for role := range Role(255) {
		if got, want := role.Known(), role < 4; got != want {
			t.Errorf("Role(%d).Known() = %v", role, got)
		}
		if got, want := role.ReadOnly(), role == RoleWatch || role == RolePeek; got != want {
			t.Errorf("Role(%d).ReadOnly() = %v", role, got)
		}
	}
}

// The daemon passes each Info of an account's holders on to its client without decoding it.
// Bytes that are not one CBOR item must not pass as several sessions.
func TestListingOfJunk(t *testing.T) {
	for _, junk := range []string{"ff", "18", "a0a0", "9fff", "c100"} {
		listing := &Listing{Sessions: []cbor.RawMessage{rawInfo, unhex(junk)}}
		if m, err := New(listing); err == nil {
			if err := m.Decode(new(Listing)); err == nil {
				t.Errorf("info %s was passed on as %x", junk, m.Payload)
			}
		}
	}
}

func TestParseSessionID(t *testing.T) {
	const text = "000102030405060708090a0b0c0d0e0f"
	if got := testID.String(); got != text {
		t.Errorf("String() = %s, want %s", got, text)
	}
	if id, err := ParseSessionID(text); err != nil || id != testID {
		t.Errorf("ParseSessionID(%s) = %v, %v", text, id, err)
	}
	for _, bad := range []string{"", text[:31], text[:30], text + "00", " " + text[1:], strings.Repeat("g", 32),
		"../" + text[3:]} {
		if id, err := ParseSessionID(bad); err == nil {
			t.Errorf("ParseSessionID(%q) = %v, want an error", bad, id)
		}
	}
}
