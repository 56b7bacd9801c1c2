package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
)

var (
	testID       = SessionID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	testInstance = InstanceID{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}
	testProof    = [32]byte(bytes.Repeat([]byte{0xee}, 32))

	testInfo = Info{
		ID:      testID,
		Name:    "work",
		Phase:   PhaseAttached,
		Since:   1700000100,
		Created: 1700000000,
		PTY:     true,
		Cols:    80,
		Rows:    24,
		Clients: []string{"ann@192.0.2.1"},
		Command: "bash",
	}
	rawInfo = cbor.RawMessage(unhex(infoHex))
)

const infoHex = `ab
	01 50 000102030405060708090a0b0c0d0e0f
	02 64 776f726b
	03 01
	04 1a 6553f164
	05 1a 6553f100
	06 f5
	07 1850
	08 1818
	09 81 6d 616e6e403139322e302e322e31
	0a 64 62617368
	0b 00`

// The bytes on the wire, one message of each type: a change here is a change of
// the protocol. Maps are written a field a line.
var goldenBodies = []struct {
	body Body
	hex  string
}{
	{&Hello{Software: "qt 1.0", User: "ann", Keys: [][]byte{{1, 2}, {3}}},
		`01 000015 a3
		01 66 717420312e30
		02 63 616e6e
		03 82 42 0102 41 03`},
	{&Offer{Keys: [][]byte{{3}}},
		`02 000005 a1
		01 81 41 03`},
	{&Answer{Key: []byte{3}, Signature: []byte{0xaa, 0xbb}},
		`03 000008 a2
		01 41 03
		02 42 aabb`},
	{&Ticket{Ticket: []byte{0xcc, 0xdd}},
		`04 000005 a1
		01 42 ccdd`},
	{&Denied{Boot: "0123456789abcdef"},
		`05 000013 a1
		01 70 30313233343536373839616263646566`},
	{&Attach{
		Mode:     ModeAttach,
		Session:  "work",
		Instance: testInstance,
		PTY:      true,
		Size:     [4]uint16{80, 24, 640, 384},
		Env:      [][2]string{{"LANG", "C"}, {"TERM", "xterm"}},
		Command:  "ls",
	},
		`06 000043 a7
		01 02
		02 64 776f726b
		03 50 0f0e0d0c0b0a09080706050403020100
		04 f5
		05 84 1850 1818 190280 190180
		06 82 82 64 4c414e47 61 43
		      82 64 5445524d 65 787465726d
		07 62 6c73`},
	{&Attached{
		ID:       testID,
		UID:      1000,
		Name:     "work",
		Secret:   []byte{0x5e},
		Software: "qtd 1.0",
		Features: []string{"f"},
		PTY:      true,
		Created:  true,
		First:    300,
		Offset:   70000,
		Live:     301,
		Skip:     5,
		Boot:     "00ff",
	},
		`07 000047 ad
		01 50 000102030405060708090a0b0c0d0e0f
		02 1903e8
		03 64 776f726b
		04 41 5e
		05 67 71746420312e30
		06 81 61 66
		07 f5
		08 f5
		09 19012c
		0a 1a00011170
		0b 19012d
		0c 05
		0d 64 30306666`},
	{&Resume{UID: 1000, ID: testID, Instance: testInstance, N: 0x0102030405060708, Proof: testProof},
		`08 00004c
		000003e8
		000102030405060708090a0b0c0d0e0f
		0f0e0d0c0b0a09080706050403020100
		0102030405060708
		eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee`},
	{&Resumed{}, `09 000001 a0`},
	{&List{}, `0a 000001 a0`},
	{&Listing{Sessions: []cbor.RawMessage{rawInfo}, More: 3},
		`0b 00004c a2
		01 81 ` + infoHex + ` 02 03`},
	{&Kill{Session: "work"},
		`0c 000007 a1
		01 64 776f726b`},
	{&Done{}, `0d 000001 a0`},
	{&Error{Code: CodeDisplaced, Text: "by ann"},
		`0e 00000b a2
		01 02
		02 66 627920616e6e`},
	{&Open{Client: "ann@::1", Scope: "5348", NoPTY: true},
		`20 000012 a3
		01 67 616e6e403a3a31
		02 64 35333438
		03 f5`},
	{&Query{}, `21 000001 a0`},
	{&State{
		Memory:  4096,
		Phase:   PhaseAttached,
		Since:   1700000100 * 1e9,
		Visible: true,
		PTY:     true,
		Name:    "work",
		Info:    rawInfo,
	},
		`22 00005e
		0000000000001000
		01
		17979d157ea0e800
		03
		04 776f726b
		` + infoHex},
	{&Grant{Address: "127.0.0.1:4433", HostKey: []byte{1}, Ticket: []byte{2}},
		`23 000017 a3
		01 6e 3132372e302e302e313a34343333
		02 41 01
		03 41 02`},
	{&Spec{
		ID:          testID,
		Name:        "work",
		Scope:       "5348",
		Base:        "/b",
		Software:    "qtd 1.0",
		Argv:        []string{"-sh"},
		Path:        "/bin/sh",
		Env:         []string{"A=b"},
		Dir:         "/h",
		PTY:         true,
		Size:        [4]uint16{80, 24},
		Command:     "sh",
		Buffer:      1 << 20,
		DetachedTTL: time.Second,
		ExitedTTL:   time.Minute,
		PipeTTL:     time.Hour,
	},
		`24 000073 b0
		01 50 000102030405060708090a0b0c0d0e0f
		02 64 776f726b
		03 64 35333438
		04 62 2f62
		05 67 71746420312e30
		06 81 63 2d7368
		07 67 2f62696e2f7368
		08 81 63 413d62
		09 62 2f68
		0a f5
		0b 84 1850 1818 00 00
		0c 62 7368
		0d 1a00100000
		0e 1a3b9aca00
		0f 1b0000000df8475800
		10 1b0000034630b8a000`},
}

// unhex decodes hexadecimal digits with any white space between them.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// empty returns a new body of the same type.
func empty(body Body) Body { return reflect.New(reflect.TypeOf(body).Elem()).Interface().(Body) }

// isCBOR reports whether a body travels as a map, not in a form of its own.
func isCBOR(body Body) bool {
	_, fixed := body.(interface{ decode([]byte) error })
	return !fixed
}

// goldenMessage returns the message that the bytes of a golden body are.
func goldenMessage(t *testing.T, encoded string) Message {
	t.Helper()
	m, err := Read(bytes.NewReader(unhex(encoded)), MaxMessage)
	if err != nil {
		t.Fatalf("Read(%s): %v", encoded, err)
	}
	return m
}

func TestBodiesGolden(t *testing.T) {
	for _, g := range goldenBodies {
		m, err := New(g.body)
		if err != nil {
			t.Errorf("New(%+v): %v", g.body, err)
			continue
		}
		if got, want := m.Append(nil), unhex(g.hex); !bytes.Equal(got, want) {
			t.Errorf("%T encodes to\n%x, want\n%x", g.body, got, want)
		}
		got := empty(g.body)
		if err := goldenMessage(t, g.hex).Decode(got); err != nil {
			t.Errorf("Decode: %v", err)
		}
		if !reflect.DeepEqual(got, g.body) {
			t.Errorf("decoded\n%+v, want\n%+v", got, g.body)
		}
	}
}

// Every body that this package has is in the table above, once.
func TestBodiesGoldenIsComplete(t *testing.T) {
	have := make(map[string]bool)
	types := make(map[Type]bool)
	for _, g := range goldenBodies {
		name := reflect.TypeOf(g.body).Elem().Name()
		if have[name] || types[g.body.Type()] {
			t.Errorf("%s, type %d, is there twice", name, g.body.Type())
		}
		have[name], types[g.body.Type()] = true, true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Type" {
				continue
			}
			if name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !have[name] {
				t.Errorf("there are no golden bytes for %s", name)
			}
		}
	}
}

// SPEC.md has a heading for each message with its number, and a line for each of
// its fields with its key.
func TestSpecIsComplete(t *testing.T) {
	b, err := os.ReadFile("SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	spec := string(b)
	check := func(heading string, body any) {
		_, section, ok := strings.Cut(spec, "\n#### "+heading+"\n")
		if !ok {
			t.Errorf("SPEC.md has no heading %q", heading)
			return
		}
		section, _, _ = strings.Cut(section, "\n#")
		for _, f := range reflect.VisibleFields(reflect.TypeOf(body).Elem()) {
			key, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
			if row := fmt.Sprintf("\n| %s | %s |", key, f.Name); key != "" && !strings.Contains(section, row) {
				t.Errorf("SPEC.md has no line %q below %q", row[1:], heading)
			}
		}
	}
	check("Info", &Info{})
	for _, g := range goldenBodies {
		check(fmt.Sprintf("%s (%d)", reflect.TypeOf(g.body).Elem().Name(), g.body.Type()), g.body)
	}
}

// What is left out has its zero value: later versions leave fields out, or have
// more of them.
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
	r := Resume{UID: 1000, ID: testID, Instance: testInstance, N: 7, Proof: testProof}
	want := unhex("000003e8 000102030405060708090a0b0c0d0e0f 0f0e0d0c0b0a09080706050403020100 0000000000000007")
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

// A daemon that runs as root reads nothing of a Resume but this.
func TestResumeHasOneSize(t *testing.T) {
	for n := range 2 * ResumeSize {
		err := Message{Type: TypeResume, Payload: make([]byte, n)}.Decode(new(Resume))
		if ok := n == ResumeSize; ok != (err == nil) {
			t.Errorf("resume of %d bytes: %v", n, err)
		}
	}
}

func TestStateForm(t *testing.T) {
	fixed := "0000000000000001 02 0000000000000003 01" // all but the name
	tests := []struct {
		why  string
		hex  string
		want *State // nil if it is to be refused
	}{
		{"nothing", "", nil},
		{"no length of the name", fixed, nil},
		{"name cut off", fixed + "02 61", nil},
		{"name too long", fixed + "21" + strings.Repeat("61", MaxName+1), nil},
		{"longest name", fixed + "20" + strings.Repeat("61", MaxName),
			&State{Memory: 1, Phase: PhaseDetached, Since: 3, Visible: true, Name: strings.Repeat("a", MaxName)}},
		{"no info", fixed + "00", &State{Memory: 1, Phase: PhaseDetached, Since: 3, Visible: true}},
		{"info of any bytes", fixed + "01 61 ffff",
			&State{Memory: 1, Phase: PhaseDetached, Since: 3, Visible: true, Name: "a", Info: cbor.RawMessage{0xff, 0xff}}},
		{"flags that are not known", "0000000000000000 00 0000000000000000 f3 00", &State{Visible: true, PTY: true}},
		{"not visible", "ffffffffffffffff 00 0000000000000000 00 00", &State{Memory: 1<<64 - 1}},
		{"before 1970", "0000000000000000 00 ffffffffffffffff 00 00", &State{Since: -1}},
	}
	for _, test := range tests {
		var got State
		err := Message{Type: TypeState, Payload: unhex(test.hex)}.Decode(&got)
		if (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v", test.why, err)
		}
		if err != nil || test.want == nil {
			continue
		}
		if len(got.Info) == 0 {
			got.Info = nil
		}
		if !reflect.DeepEqual(&got, test.want) {
			t.Errorf("%s: %+v, want %+v", test.why, got, *test.want)
		}
	}
	if m, err := New(&State{Name: strings.Repeat("a", MaxName+1)}); err == nil {
		t.Errorf("a name that is too long was encoded: %x", m.Payload)
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

// Infos come from the holders of one account and go to its client, past a daemon
// that does not look into them. One that is no CBOR must not pass as several.
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
	for _, bad := range []string{"", text[:31], text[:30], text + "00", " " + text[1:], strings.Repeat("g", 32), "../" + text[3:]} {
		if id, err := ParseSessionID(bad); err == nil {
			t.Errorf("ParseSessionID(%q) = %v, want an error", bad, id)
		}
	}
}
