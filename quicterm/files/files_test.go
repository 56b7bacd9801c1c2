package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"
)

// A harness is a client of a server.
type harness struct {
	t   *testing.T
	c   *sftp.Client
	out *Writer
	own chan []byte // answers to requests of this package
}

const ownID = 1 << 31

func newHarness(t *testing.T, readOnly bool) *harness {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(far, far, readOnly)
		far.Close()
	}()
	h := &harness{t: t, out: NewWriter(near), own: make(chan []byte, 100)}
	in := NewReader(near, func(_ byte, id uint32) bool { return id >= ownID }, func(packet []byte) bool {
		h.own <- packet
		return true
	})
	var err error
	if h.c, err = sftp.NewClientPipe(in, struct {
		io.Writer
		io.Closer
	}{h.out, near}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.c.Close()
		if err := <-ended; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the server ends with %v", err)
		}
	})
	return h
}

// ask sends a request of this package, and returns its answer.
func (h *harness) ask(request []byte) []byte {
	h.t.Helper()
	if err := h.out.Send(request); err != nil {
		h.t.Fatal(err)
	}
	packet := <-h.own
	if id := binary.BigEndian.Uint32(packet[1:]); id != ownID {
		h.t.Fatalf("the answer has the id %d", id)
	}
	return packet
}

func (h *harness) put(name string, a Attributes, content string) error {
	h.t.Helper()
	return ParseStatus(h.ask(Put(ownID, name, a, []byte(content)))[5:])
}

func (h *harness) wantFile(name, content string, mode fs.FileMode) {
	h.t.Helper()
	info, err := os.Lstat(name)
	got, _ := os.ReadFile(name)
	if err != nil || string(got) != content || info.Mode() != mode {
		h.t.Errorf("%s: %q, %v, %v; want %q, %v", name, got, info, err, content, mode)
	}
}

// A request writes a file at once, in place of what had its name.
func TestPut(t *testing.T) {
	h, dir := newHarness(t, false), t.TempDir()
	name := filepath.Join(dir, "a")
	for content, at := range map[string]time.Time{
		"one": time.Unix(1e9, 5), "": time.Unix(0, 0), strings.Repeat("x", MaxPut): time.Unix(-1, 0),
	} {
		if err := h.put(name, Attributes{Mode: 0o751, Exact: true, ModTime: at}, content); err != nil {
			t.Fatal(err)
		}
		h.wantFile(name, content, 0o751)
		if info, _ := os.Stat(name); !info.ModTime().Equal(at) {
			t.Errorf("it was changed at %v", info.ModTime())
		}
	}
	other := filepath.Join(dir, "other")
	os.WriteFile(other, []byte("other"), 0o600)
	for _, link := range []string{filepath.Join(dir, "link"), PartOf(filepath.Join(dir, "link"))} {
		if err := os.Symlink(other, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.put(filepath.Join(dir, "link"), Attributes{Mode: 0o600}, "new"); err != nil {
		t.Fatal(err)
	}
	h.wantFile(filepath.Join(dir, "link"), "new", 0o600)
	h.wantFile(other, "other", 0o600)

	for name, want := range map[string]string{
		dir + "/none/a": "no such file", dir: "exist", "": "malformed", dir + "/" + strings.Repeat("n", 300): "name too long",
		"/proc/version": "",
	} {
		if err := h.put(name, Attributes{Mode: 0o600}, "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("put %s: %v, want %q", name, err, want)
		}
	}
	if parts, _ := filepath.Glob(dir + "/*.part"); parts != nil {
		t.Errorf("%q are left", parts)
	}
}

func TestHash(t *testing.T) {
	h, name := newHarness(t, false), filepath.Join(t.TempDir(), "a")
	content := bytes.Repeat([]byte("0123456789"), 1000)
	os.WriteFile(name, content, 0o600)
	for _, test := range []struct{ offset, size, want uint64 }{
		{0, 10, 10}, {5, 9990, 9990}, {5, MaxHash, 9995}, {10000, 1, 0}, {1 << 60, 1, 0}, {0, 0, 0},
	} {
		got, err := ParseHash(h.ask(HashOf(ownID, name, test.offset, test.size))[5:])
		from := min(test.offset, 10000)
		if err != nil || got.Size != test.want || got.Sum != sha256.Sum256(content[from:from+test.want]) {
			t.Errorf("%+v: %d bytes, %v", test, got.Size, err)
		}
	}
	for _, request := range [][]byte{
		HashOf(ownID, name, 0, MaxHash+1), HashOf(ownID, name, 1<<63, 1), HashOf(ownID, "/none", 0, 1), HashOf(ownID, "/", 0, 1),
	} {
		if err := ParseStatus(h.ask(request)[5:]); err == nil {
			t.Errorf("%q is answered", request)
		}
	}
}

// Whatever comes, a server answers or ends.
func TestTruncatedRequests(t *testing.T) {
	h := newHarness(t, false)
	for _, request := range [][]byte{
		Put(ownID, filepath.Join(t.TempDir(), "a"), Attributes{Mode: 0o600}, []byte("content")), HashOf(ownID, "/none", 0, 1),
	} {
		name := len(AppendString(Packet(TypeExtended, 0), PutRequest))
		for n := name + 1; n < len(request); n++ {
			if err := ParseStatus(h.ask(bytes.Clone(request[:n]))[5:]); err == nil {
				t.Errorf("%q is obeyed", request[:n])
			}
		}
	}
	for _, answer := range [][]byte{nil, {0}, {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 9, 1}} {
		if err := ParseStatus(answer); err == nil {
			t.Errorf("ParseStatus(%x) = nil", answer)
		}
		if _, err := ParseHash(answer); err == nil {
			t.Errorf("ParseHash(%x) has no error", answer)
		}
	}
}

func TestReadOnly(t *testing.T) {
	h, name := newHarness(t, true), filepath.Join(t.TempDir(), "a")
	if err := h.put(name, Attributes{Mode: 0o600}, "x"); err == nil {
		t.Error("a server that only reads has written a file")
	}
	if err := h.c.Mkdir(name); err == nil {
		t.Error("a server that only reads has made a directory")
	}
	os.WriteFile(name, []byte("x"), 0o600)
	if _, err := ParseHash(h.ask(HashOf(ownID, name, 0, 1))[5:]); err != nil {
		t.Error(err)
	}
}

// A reader passes on what it does not take, in whatever pieces it comes, and stops at what is no packet.
func TestReader(t *testing.T) {
	packet := func(kind byte, id uint32, content string) []byte {
		p := append(Packet(kind, id), content...)
		binary.BigEndian.PutUint32(p, uint32(len(p)-4))
		return p
	}
	stream := bytes.Join([][]byte{packet(1, 3, ""), packet(200, 5, "no"), packet(200, 6, "yes"), packet(7, 8, "rest")}, nil)
	want := bytes.Join([][]byte{packet(1, 3, ""), packet(200, 5, "no"), packet(7, 8, "rest")}, nil)
	for n := 0; n <= len(stream); n++ {
		var taken []string
		r := NewReader(bytes.NewReader(stream[:n]), func(kind byte, _ uint32) bool { return kind == 200 }, func(p []byte) bool {
			if p[4] == 6 {
				taken = append(taken, string(p[5:]))
			}
			return p[4] == 6
		})
		got, err := io.ReadAll(r)
		if !bytes.HasPrefix(want, got) || n == len(stream) && (err != nil || len(got) != len(want) || strings.Join(taken, "") != "yes") {
			t.Errorf("of %d bytes: %x, %v, taken %q", n, got, err, taken)
		}
	}
	for _, length := range []uint32{0, 4, MaxPacket + 1, 1<<32 - 1} {
		bad := binary.BigEndian.AppendUint32(nil, length)
		r := NewReader(bytes.NewReader(append(bad, make([]byte, 100)...)), func(byte, uint32) bool { return false }, nil)
		if _, err := io.ReadAll(r); !errors.Is(err, errMalformed) {
			t.Errorf("a packet of %d bytes: %v", length, err)
		}
	}
}

// Writes in pieces are not torn by packets that others send.
func TestWriter(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	w.Write([]byte{0, 0, 0, 6, 1})
	w.Send(Packet(9, 1))
	w.Write([]byte{0, 0, 0, 2, 'x', 0, 0})
	w.Write([]byte{0, 5, 2, 0, 0, 0, 3})
	want := "00000005090000000100000006010000000278" + "000000050200000003"
	if got := out.Bytes(); hexOf(got) != want {
		t.Errorf("%x, want %s", got, want)
	}
}

func hexOf(b []byte) string {
	const digits = "0123456789abcdef"
	var s strings.Builder
	for _, c := range b {
		s.WriteString(digits[c>>4:c>>4+1] + digits[c&15:c&15+1])
	}
	return s.String()
}

// The bytes of the requests, as SPEC.md has them.
func TestGoldenRequests(t *testing.T) {
	put := Put(7, "a", Attributes{Mode: 0o644, Exact: true, ModTime: time.Unix(1, 2)}, []byte("hi"))
	const wantPut = "00000000c8000000070000000c7075744071756963746572" + "6d" + "0000000161" + "000001a4" + "00000003" + "000000003b9aca02" + "000000026869"
	if got := hexOf(put); got != wantPut {
		t.Errorf("put: %s, want %s", got, wantPut)
	}
	const wantHash = "00000000c8000000080000000d6861736840717569637465726d" + "0000000161" + "0000000000000003" + "0000000000000009"
	if got := hexOf(HashOf(8, "a", 3, 9)); got != wantHash {
		t.Errorf("hash: %s, want %s", got, wantHash)
	}
}

func TestPartOf(t *testing.T) {
	long := strings.Repeat("n", 255)
	for name, want := range map[string]string{"a": "a.qt.part", "/d.e/a": "/d.e/a.qt.part"} {
		if got := PartOf(name); got != want || !IsPart(got) || IsPart(name) {
			t.Errorf("PartOf(%q) = %q", name, got)
		}
	}
	if got := PartOf("d/" + long); len(got) != 2+255 || !IsPart(got) || got == PartOf("d/"+long[1:]+"m") {
		t.Errorf("PartOf of a long name = %q", got)
	}
}

func FuzzServe(f *testing.F) {
	init := Packet(1, 3)
	binary.BigEndian.PutUint32(init, 5)
	f.Add(init)
	for _, request := range [][]byte{Put(1, "/none/a", Attributes{}, []byte("x")), HashOf(2, "/none/a", 0, 1)} {
		binary.BigEndian.PutUint32(request, uint32(len(request)-4))
		f.Add(request)
		f.Add(append(bytes.Clone(init), request...))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		near, far := io.Pipe()
		go io.Copy(io.Discard, near)
		Serve(bytes.NewReader(stream), far, true)
		near.Close()
	})
}

// The names of a directory are read as SFTP has them, and nothing that is malformed is.
func TestParseNames(t *testing.T) {
	var b []byte
	u32 := func(n uint32) { b = binary.BigEndian.AppendUint32(b, n) }
	name := func(name string, flags uint32) {
		b = AppendString(AppendString(b, name), "-rw-r--r-- as ls has it")
		u32(flags)
	}
	u32(5)
	name(".", 0)
	name("a/..", hasSize|hasOwner|hasMode|hasTimes|hasExtended)
	b = binary.BigEndian.AppendUint64(b, 5<<32)
	for _, n := range []uint32{1, 2, 0o104755, 10, 20, 1} {
		u32(n)
	}
	b = AppendString(AppendString(b, "x"), "y")
	name("link", hasMode)
	u32(0o120777)
	name("dir", hasMode)
	u32(0o040700)
	name("odd", 0)
	infos, err := ParseNames(b)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, i := range infos {
		fmt.Fprintf(&got, "%s %d %v %t %d, ", i.Name(), i.Size(), i.Mode(), i.IsDir(), i.ModTime().Unix())
	}
	const zero = "-62135596800"
	if want := "a/.. 21474836480 -rwxr-xr-x false 20, link 0 Lrwxrwxrwx false " + zero + ", dir 0 drwx------ true " + zero +
		", odd 0 ---------- false " + zero + ", "; got.String() != want {
		t.Errorf("%s\nwant\n%s", got.String(), want)
	}
	for n := range b {
		if infos, err := ParseNames(b[:n]); err == nil {
			t.Errorf("%d of %d bytes: %v", n, len(b), infos)
		}
	}
	for _, bad := range [][]byte{{0xff, 0xff, 0xff, 0xff}, append([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 0, 0, 1}, bytes.Repeat([]byte{0xff}, 8)...)} {
		if infos, err := ParseNames(bad); err == nil {
			t.Errorf("%x: %v", bad, infos)
		}
	}
	if _, err := ParseHandle([]byte{0, 0, 0, 2, 'h'}); err == nil {
		t.Error("a handle is longer than its packet")
	}
	if handle, err := ParseHandle([]byte{0, 0, 0, 1, 'h'}); err != nil || handle != "h" {
		t.Errorf("ParseHandle = %q, %v", handle, err)
	}
}

func FuzzParseNames(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0x81, 0xa4})
	f.Fuzz(func(t *testing.T, body []byte) {
		infos, err := ParseNames(body)
		if err == nil && len(infos) > len(body) {
			t.Errorf("%d files in %d bytes", len(infos), len(body))
		}
		ParseHandle(body)
		ParseHash(body)
		ParseStatus(body)
	})
}
