package sealed_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/carriertest"
	"github.com/quicterm/quicterm/migrate/carrier/sealed"
)

var (
	keyA = bytes.Repeat([]byte{0xa}, sealed.KeySize)
	keyB = bytes.Repeat([]byte{0xb}, sealed.KeySize)
)

func TestSealed(t *testing.T) {
	carriertest.Run(t, func(*testing.T) (a, b carrier.Carrier) {
		a, b = carriertest.Pair()
		return sealed.New(a, keyA, keyB), sealed.New(b, keyB, keyA)
	})
}

// A wire is a carrier that records what is sent, and receives what it is given.
type wire struct {
	carrier.Carrier
	stream    bytes.Buffer
	datagrams [][]byte
	in        io.Reader
}

func (w *wire) Write(b []byte) (int, error) { return w.stream.Write(b) }
func (w *wire) Read(b []byte) (int, error)  { return w.in.Read(b) }

func (w *wire) SendDatagram(b []byte) error {
	w.datagrams = append(w.datagrams, bytes.Clone(b))
	return nil
}

func (w *wire) ReceiveDatagram() ([]byte, error) {
	if len(w.datagrams) == 0 {
		return nil, io.EOF
	}
	b := w.datagrams[0]
	w.datagrams = w.datagrams[1:]
	return b, nil
}

// The bytes are as SPEC.md says.
func TestGolden(t *testing.T) {
	w := new(wire)
	c := sealed.New(w, keyA, keyB)
	for range 2 {
		if _, err := c.Write([]byte("key")); err != nil {
			t.Fatal(err)
		}
		if err := c.SendDatagram([]byte("key")); err != nil {
			t.Fatal(err)
		}
	}
	got := fmt.Sprintf("stream %x", w.stream.Bytes())
	for _, d := range w.datagrams {
		got += fmt.Sprintf("\ndatagram %x", d)
	}
	const want = "stream 000308ed07276aca0748cff0d20320f8629c7caf5f0003e44a0a4d2040b08e294244cc9832205f381002" +
		"\ndatagram 0000000000000000e428920ae8c1465736148df56889932a669441" +
		"\ndatagram 0000000000000001b977f20ec6baafe7f0af5e5e73979b3396dfdf"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// records returns the bytes of a stream with the given writes.
func records(writes ...string) []byte {
	w := new(wire)
	c := sealed.New(w, keyA, keyB)
	for _, s := range writes {
		c.Write([]byte(s))
	}
	return w.stream.Bytes()
}

// No byte of a stream can be changed, left out, repeated or brought from elsewhere: what was
// read before is a prefix of what was written.
func TestForgedStream(t *testing.T) {
	good := records("one,", "two,", strings.Repeat("x", 5000))
	one, two := len(records("one,")), len(records("one,", "two,"))
	streams := map[string][]byte{
		"repeated record":     append(bytes.Clone(good[:one]), good...),
		"record left out":     good[one:],
		"record moved":        append(bytes.Clone(good[one:two]), good[:one]...),
		"plain":               []byte("one,two,"),
		"length of 4097":      append([]byte{0x10, 0x01}, make([]byte, 70_000)...),
		"too long":            append([]byte{0xff, 0xff}, make([]byte, 70_000)...),
		"keys of another one": mirrored("one,"),
	}
	for i := range good {
		if i < 60 || i%997 == 0 {
			b := bytes.Clone(good)
			b[i] ^= 1
			streams[fmt.Sprintf("byte %d changed", i)] = b
		}
	}
	for name, b := range streams {
		t.Run(name, func(t *testing.T) {
			c := sealed.New(&wire{in: bytes.NewReader(b)}, keyB, keyA)
			got, err := io.ReadAll(c)
			if err == nil || !strings.HasPrefix("one,two,"+strings.Repeat("x", 5000), string(got)) {
				t.Errorf("read %.20q, %v", got, err)
			}
			if !errors.Is(err, sealed.ErrForged) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Reads of any size get all bytes in order, whatever the sizes of the writes were.
func TestReadSizes(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	sent := records("one,", long, "two", "", long[:4096], "three")
	want := "one," + long + "two" + long[:4096] + "three"
	for _, size := range []int{1, 3, 16, 4095, 4096, 4097, 10_000, 100_000} {
		c := sealed.New(&wire{in: bytes.NewReader(sent)}, keyB, keyA)
		var got []byte
		b := make([]byte, size)
		for {
			n, err := c.Read(b)
			if got = append(got, b[:n]...); err == io.EOF {
				break
			}
			if n == 0 || err != nil {
				t.Fatalf("read of %d: %d bytes, %v", size, n, err)
			}
		}
		if string(got) != want {
			t.Errorf("reads of %d get %d other bytes than the %d that were written", size, len(got), len(want))
		}
	}
}

// mirrored returns what the other end would write.
func mirrored(s string) []byte {
	w := new(wire)
	sealed.New(w, keyB, keyA).Write([]byte(s))
	return w.stream.Bytes()
}

// A stream that is cut off between two records ends, and in one it breaks.
func TestTruncatedStream(t *testing.T) {
	good := records("one,", "two,")
	one := len(records("one,"))
	for n := range good {
		c := sealed.New(&wire{in: bytes.NewReader(good[:n])}, keyB, keyA)
		want := io.ErrUnexpectedEOF
		if n == 0 || n == one {
			want = nil
		}
		got, err := io.ReadAll(c)
		if !errors.Is(err, want) || len(got) != n/one*4 {
			t.Errorf("after %d bytes: %q, %v; want error %v", n, got, err, want)
		}
	}
}

// Datagrams that do not open are dropped.
func TestForgedDatagrams(t *testing.T) {
	w := new(wire)
	c := sealed.New(w, keyA, keyB)
	c.SendDatagram([]byte("good"))
	good := w.datagrams[0]
	w.datagrams = [][]byte{{}, []byte("plain"), make([]byte, carrier.MaxDatagram), good[:len(good)-1]}
	for i := range good {
		b := bytes.Clone(good)
		b[i] ^= 1
		w.datagrams = append(w.datagrams, b)
	}
	w.datagrams = append(w.datagrams, bytes.Clone(good))
	got, err := sealed.New(w, keyB, keyA).ReceiveDatagram()
	if err != nil || string(got) != "good" || len(w.datagrams) != 0 {
		t.Errorf("received %q, %v, and %d are left", got, err, len(w.datagrams))
	}
}

// An empty datagram keeps the path open, and says nothing.
func TestEmptyDatagram(t *testing.T) {
	w := new(wire)
	sealed.New(w, keyA, keyB).SendDatagram(nil)
	if len(w.datagrams) != 1 || len(w.datagrams[0]) != 0 {
		t.Errorf("sent %x, want one that is empty", w.datagrams)
	}
}

// A datagram that would be too long with its seal is not sent.
func TestLongDatagram(t *testing.T) {
	w := new(wire)
	c := sealed.New(w, keyA, keyB)
	c.SendDatagram(make([]byte, carrier.MaxDatagram-carrier.SealSize))
	c.SendDatagram(make([]byte, carrier.MaxDatagram-carrier.SealSize+1))
	if len(w.datagrams) != 1 || len(w.datagrams[0]) != carrier.MaxDatagram {
		t.Errorf("%d datagrams were sent", len(w.datagrams))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(records("one,", "two,"))
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, _ := io.ReadAll(sealed.New(&wire{in: bytes.NewReader(b)}, keyB, keyA))
		if !strings.HasPrefix("one,two,", string(got)) {
			t.Errorf("read %s", hex.EncodeToString(got))
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	c := sealed.New(discard{}, keyA, keyB)
	p := make([]byte, 64<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		c.Write(p)
	}
}

type discard struct{ carrier.Carrier }

func (discard) Write(b []byte) (int, error) { return len(b), nil }
