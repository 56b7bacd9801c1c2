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
	testBoot     = BootMark{0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7}
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
		Command: "bash",
		Heard:   1700000150,
		Members: []Member{{Client: "ann@192.0.2.1", Role: RoleWriter, Since: 1700000100}},
		More:    2,

		Activity: &Activity{Program: "vim", Waits: WaitsInput, Since: 1700000120},
	}
	rawInfo = cbor.RawMessage(unhex(infoHex))
)

const infoHex = `ae
	01 50 000102030405060708090a0b0c0d0e0f
	02 64 776f726b
	03 01
	04 1a 6553f164
	05 1a 6553f100
	06 f5
	07 1850
	08 1818
	09 81 a3
		01 6d 616e6e403139322e302e322e31
		02 00
		03 1a 6553f164
	0a 64 62617368
	0b 00
	0c 1a 6553f196
	0d 02
	0e a3
		01 63 76696d
		02 03
		03 1a 6553f178`

// The bytes on the wire, one message of each type: a change here is a change of
// the protocol. Maps are written a field a line.
var goldenBodies = []struct {
	body Body
	hex  string
}{
	{&Hello{Software: "qt 1.0", User: "ann", Keys: [][]byte{{1, 2}, {3}}, More: true},
		`01 000017 a4
		01 66 717420312e30
		02 63 616e6e
		03 82 42 0102 41 03
		04 f5`},
	{&Offer{Keys: [][]byte{{3}}, Time: []byte{0xee}},
		`02 000008 a2
		01 81 41 03
		02 41 ee`},
	{&Answer{Key: []byte{3}, Signature: []byte{0xaa, 0xbb}, Host: []byte{0xcc}, Time: []byte{1, 0xee}},
		`03 00000f a4
		01 41 03
		02 42 aabb
		03 41 cc
		04 42 01ee`},
	{&Token{Token: []byte{0xcc, 0xdd}},
		`04 000005 a1
		01 42 ccdd`},
	{&Denied{Gone: true},
		`05 000003 a1
		01 f5`},
	{&Attach{
		Mode:     ModeAttach,
		Session:  "work",
		Instance: testInstance,
		PTY:      true,
		Size:     Size{Cols: 80, Rows: 24, XPixel: 640, YPixel: 384},
		Env:      [][2]string{{"LANG", "C"}, {"TERM", "xterm"}},
		Command:  "ls",
		Role:     RoleShare,
		Replay:   Replay{Kind: ReplayScreen, Lines: 1000, From: 7},
		Skip:     true,

		Compression: 1,
		Hints:       HintsProgram,
		Whole:       true,
		Own:         true,
		Machine:     "laptop",
		Dir:         "/w",
		Required:    1,
		Input:       []byte("ls\r"),
		Events:      true,
		Notify:      &Notify{Endpoint: "https://p/", Key: []byte{1}, Auth: []byte{2}, Signer: []byte{3}},
		Side:        SideForward,
		Agent:       []byte{1, 2},
		Terminfo:    []byte{0x1a, 1},
	},
		`06 00008f b7
		01 02
		02 64 776f726b
		03 50 0f0e0d0c0b0a09080706050403020100
		04 f5
		05 84 1850 1818 190280 190180
		06 82 82 64 4c414e47 61 43
		      82 64 5445524d 65 787465726d
		07 62 6c73
		08 01
		09 a3
			01 01
			02 1903e8
			03 07
		0a f5
		0b 01
		0c 02
		0d f5
		0e f5
		0f 66 6c6170746f70
		10 62 2f77
		11 01
		12 43 6c730d
		13 f5
		14 a4
			01 6a 68747470733a2f2f702f
			02 41 01
			03 41 02
			04 41 03
		15 01
		16 42 0102
		17 42 1a01`},
	{&Attached{
		ID:      testID,
		UID:     1000,
		Name:    "work",
		Secret:  []byte{0x5e},
		PTY:     true,
		Created: true,
		First:   300,
		Offset:  70000,
		Live:    301,
		Trim:    5,
		Boot:    testBoot,
		Size:    Size{Cols: 80, Rows: 24},
		Role:    RoleShare,
		Unseen:  7,

		Number: 9,
		Owner:  8,

		Activity: &Activity{
			Program: "make", Waits: WaitsNothing, Since: 1, Dir: "/w", Last: &Ended{Command: "make", Status: -1, At: 2},
		},
		Events:  true,
		Typists: []Typist{{7, "a@b"}},
		Again:   []byte{0x0e},
		Side:    SideFiles,
	},
		`07 00007b b5
		01 50 000102030405060708090a0b0c0d0e0f
		02 1903e8
		03 64 776f726b
		04 41 5e
		05 f5
		06 f5
		07 19012c
		08 1a00011170
		09 19012d
		0a 05
		0b 48 b0b1b2b3b4b5b6b7
		0c 84 1850 1818 00 00
		0d 01
		0e 07
		0f 09
		10 08
		11 a5
			01 64 6d616b65
			02 01
			03 01
			04 62 2f77
			05 a3
				01 64 6d616b65
				02 20
				03 02
		12 f5
		13 81 a2 01 07 02 63 614062
		14 41 0e
		15 02`},
	{&Resume{UID: 1000, ID: testID, Instance: testInstance, Boot: testBoot, N: 0x0102030405060708, Proof: testProof},
		`08 000054
		000003e8
		000102030405060708090a0b0c0d0e0f
		0f0e0d0c0b0a09080706050403020100
		b0b1b2b3b4b5b6b7
		0102030405060708
		eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee`},
	{&Resumed{Account: "ann", Key: []byte("key"), Scope: "5348", NoPTY: true, Away: time.Second, Proof: "ssh",
		Reported: "password", Proven: 1700000000},
		`09 00002e a8
		01 63 616e6e
		02 43 6b6579
		03 64 35333438
		04 f5
		05 1a3b9aca00
		06 63 737368
		07 68 70617373776f7264
		08 1a6553f100`},
	{&Revoke{Key: []byte("sum"), All: true},
		`0f 000008 a2
		01 43 73756d
		02 f5`},
	{&Revoked{Clients: 2, Silent: 1, Keys: 3},
		`10 000007 a3
		01 02
		02 01
		03 03`},
	{&Enroll{Kind: "share", Key: []byte("key"), Name: "work-1", Session: "work", Types: true, Once: true, Seconds: 3600},
		`17 000023 a7
		01 65 7368617265
		02 43 6b6579
		03 66 776f726b2d31
		04 64 776f726b
		05 f5
		06 f5
		07 190e10`},
	{&Enrolled{Expires: 1700000000}, `18 000007 a1 01 1a6553f100`},
	{&ListKeys{}, `19 000001 a0`},
	{&Keys{Keys: []EnrolledKey{{Sum: []byte("sum"), Kind: "share", Name: "work-1", By: "ssh", Made: 1700000000,
		Used: 1700000100, Expires: 1700000200, Spent: true, Session: testID, Types: true, Once: true}}},
		`1a 000047 a1
		01 81 ab
			01 43 73756d
			02 65 7368617265
			03 66 776f726b2d31
			04 63 737368
			05 1a6553f100
			06 1a6553f164
			07 1a6553f1c8
			08 f5
			09 50 000102030405060708090a0b0c0d0e0f
			0a f5
			0b f5`},
	{&List{}, `0a 000001 a0`},
	{&Listing{Sessions: []cbor.RawMessage{rawInfo}, More: 3},
		`0b 00006d a2
		01 81 ` + infoHex + ` 02 03`},
	{&Clear{Session: "work"},
		`11 000007 a1
		01 64 776f726b`},
	{&Cleared{Bytes: 1000, Lines: 20, Kept: 3},
		`12 000009 a3
		01 1903e8
		02 14
		03 03`},
	{&Describe{}, `14 000001 a0`},
	{&Description{Software: "qtd 1", Time: 1700000100000, Client: "[::1]:2", Proof: "token", Sessions: 3, MaxSessions: 100,
		Memory: 4096, MaxMemory: 1 << 30, Logout: LogoutEnds, Granted: true, HostKey: []byte{0xab, 0xcd}, Page: "https://h/"},
		`15 000045 ac
		01 65 7174642031
		02 1b 0000018bcfe6eea0
		03 67 5b3a3a315d3a32
		04 65 746f6b656e
		05 03
		06 1864
		07 191000
		08 1a40000000
		09 02
		0a f5
		0b 42 abcd
		0c 6a 68747470733a2f2f682f`},
	{&Kill{Session: "1", Others: []string{"work"}},
		`0c 00000b a2
		01 61 31
		03 81 64 776f726b`},
	{&Killed{Errors: []Error{{}, {Code: CodeNoSession, Text: "none"}}},
		`16 000011 a1
		01 82 a2 01 00 02 60 a2 01 01 02 64 6e6f6e65`},
	{&Done{}, `0d 000001 a0`},
	{&Rename{Session: "1", Name: "work"},
		`13 00000a a2
		01 61 31
		02 64 776f726b`},
	{&Open{Client: "ann@::1", Scope: "5348", NoPTY: true, Instance: testInstance, Account: "ann", Key: []byte("key"),
		Proof:    "ssh",
		Reported: "password",
		Proven:   1700000000,
		Guest:    &Guest{Types: true, Until: 1700000000},
		Forwards: true},
		`20 00004f ab
		01 67 616e6e403a3a31
		02 64 35333438
		03 f5
		04 50 0f0e0d0c0b0a09080706050403020100
		05 63 616e6e
		06 43 6b6579
		07 63 737368
		08 68 70617373776f7264
		09 1a6553f100
		0a a2
			01 f5
			02 1a6553f100
		0c f5`},
	{&Query{Activity: true},
		`21 000003 a1
		01 f5`},
	{&State{
		Memory:  4096,
		Phase:   PhaseAttached,
		Since:   1700000100 * 1e9,
		Visible: true,
		PTY:     true,
		Own:     true,
		Ended:   true,
		Claimed: true,
		Name:    "work",
		Info:    rawInfo,
		Follows: true,
		Side:    SideFiles,
	},
		`22 000090 ac
		01 19 1000
		02 01
		03 1b 17979d157ea0e800
		04 f5
		05 f5
		06 f5
		07 f5
		08 f5
		09 64 776f726b
		0a 58 68 ` + infoHex + `
		0b f5
		0c 02`},
	{&Grant{Address: "127.0.0.1:4433", HostKey: []byte{1}, Token: []byte{2}, Software: "qtd 1", Protocol: "quicterm/1",
		Warning: "w"},
		`23 00002d a6
		01 6e 3132372e302e302e313a34343333
		02 41 01
		03 41 02
		04 65 7174642031
		05 6a 717569637465726d2f31
		06 61 77`},
	{&Ask{Carrier: true, Client: "[::1]:2", Server: "[::1]:22", Reported: "password"},
		`25 000020 a4
		01 f5
		02 67 5b3a3a315d3a32
		03 68 5b3a3a315d3a3232
		04 68 70617373776f7264`},
	{&Inspect{AtEnd: true},
		`26 000003 a1
		01 f5`},
	{&Report{
		Software:   "qtd 1.0",
		Name:       "work",
		Phase:      PhaseExited,
		Since:      1700000100,
		Created:    1700000000,
		PTY:        true,
		Memory:     300000,
		Ring:       262144,
		Capacity:   64 << 20,
		RTT:        time.Second,
		Gaps:       1,
		Duplicates: 2,
		Corrupted:  3,
		Status:     129,
		Reason:     "killed",
	},
		`27 000049 af
		01 67 71746420312e30
		02 64 776f726b
		03 03
		04 1a6553f164
		05 1a6553f100
		06 f5
		07 1a000493e0
		08 1a00040000
		09 1a04000000
		0a 1a3b9aca00
		0b 01
		0c 02
		0d 03
		0e 1881
		0f 66 6b696c6c6564`},
	{&End{Reason: "update"},
		`2a 000009 a1
		01 66 757064617465`},
	{&Appeared{Scope: "5348"}, `2b 000007 a1 01 64 35333438`},
	{&OfferFile{ID: 1, Size: 2, Name: "a"}, `2c 000008 a3 01 01 02 02 03 61 61`},
	{&Started{}, `29 000001 a0`},
	{&Launch{
		ID:          testID,
		Name:        "work",
		Scope:       "5348",
		Base:        "/b",
		Argv:        []string{"-sh"},
		Path:        "/bin/sh",
		Env:         []string{"A=b"},
		Dir:         "/h",
		PTY:         true,
		Size:        Size{Cols: 80, Rows: 24},
		Command:     "sh",
		Buffer:      1 << 20,
		DetachedTTL: time.Second,
		ExitedTTL:   time.Minute,
		PipeTTL:     time.Hour,
		Socket:      "/s",
		Instance:    testInstance,
		MaxWatchers: 50,

		Persist: &Persist{Task: PersistShow, Dir: "/p"},
		Start:   "w",
		Keys:    &KeyTask{Task: KeysAdd, Dir: "/k", Sum: []byte("sum"), Line: []byte("l")},
		Side:    SideFiles,

		Terminfo: []byte{0x1a, 1},
		Agent:    true,
	},
		`24 0000a8 b818
		01 50 000102030405060708090a0b0c0d0e0f
		02 64 776f726b
		03 64 35333438
		04 62 2f62
		05 81 63 2d7368
		06 67 2f62696e2f7368
		07 81 63 413d62
		08 62 2f68
		09 f5
		0a 84 1850 1818 00 00
		0b 62 7368
		0c 1a00100000
		0d 1a3b9aca00
		0e 1b0000000df8475800
		0f 1b0000034630b8a000
		10 62 2f73
		11 50 0f0e0d0c0b0a09080706050403020100
		12 1832
		13 a2 01 02 02 62 2f70
		14 61 77
		15 a4
			01 01
			02 62 2f6b
			03 43 73756d
			04 41 6c
		16 02
		17 42 1a01
		1818 f5`},
	{&Dial{Host: "db", Port: 5432, Path: "/s", UDP: true},
		`1b 00000f a4
		01 62 6462
		02 19 1538
		03 62 2f73
		04 f5`},
	{&Listen{Host: "*", Port: 80, Path: "/s", ID: 7},
		`1c 00000d a4
		01 61 2a
		02 18 50
		03 62 2f73
		04 07`},
	{&Listening{Port: 8080, Loopback: true},
		`1d 000007 a2
		01 19 1f90
		02 f5`},
	{&Accepted{ID: 7},
		`1e 000003 a1
		01 07`},
	{&OfferAgent{ID: 7, Agent: []byte{1, 2}},
		`1f 000007 a2
		01 07
		02 42 0102`},
	{&Error{Code: CodeLost, Text: "t", Lost: &Lost{
		Name: "work", Scope: "5348", Summary: "sh", Command: "sh -c x", Dir: "/h", Size: Size{Cols: 80, Rows: 24}, Created: 1,
		Boot: testBoot, Exited: true, Status: 4, Reason: "r", Screen: []byte{0x1b}, Seen: 2, Rebooted: true,
	}},
		`0e 000047 a3
		01 05
		02 61 74
		03 ae
			01 64 776f726b
			02 64 35333438
			03 62 7368
			04 67 7368202d632078
			05 62 2f68
			06 84 1850 1818 00 00
			07 01
			08 48 b0b1b2b3b4b5b6b7
			09 f5
			0a 04
			0b 61 72
			0c 41 1b
			0d 02
			0e f5`},
	{&Records{States: [][]byte{{1, 2}}}, `28 000006 a1 01 81 42 0102`},
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
	check("Lost", &Lost{})
	check("Event", &Event{})
	check("Member", &Member{})
	check("Activity", &Activity{})
	check("Ended", &Ended{})
	check("Replay", &Replay{})
	check("EnrolledKey", &EnrolledKey{})
	check("KeyTask", &KeyTask{})
	for _, g := range goldenBodies {
		check(fmt.Sprintf("%s (%d)", reflect.TypeOf(g.body).Elem().Name(), g.body.Type()), g.body)
	}
}
