package driver

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/quicterm/quicterm/buffer"
	"github.com/quicterm/quicterm/quicterm/session"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// buildLog returns about n bytes like a compiler's output.
func buildLog(rng *rand.Rand, n int) []byte {
	var b []byte
	for len(b) < n {
		dir := []string{"session", "holder", "wire", "netmon"}[rng.IntN(4)]
		b = fmt.Appendf(b, "gcc -O2 -Wall -Wextra -Iinclude -Isrc/%s -c src/%s/file%d.c -o build/%s/file%d.o\n",
			dir, dir, rng.IntN(1000), dir, rng.IntN(1000))
		if rng.IntN(4) == 0 {
			b = fmt.Appendf(b, "src/%s/file%d.c:%d:%d: warning: unused variable 'v%x' [-Wunused-variable]\n",
				dir, rng.IntN(1000), rng.IntN(2000), rng.IntN(80), rng.Uint32())
		}
	}
	return b[:n]
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// framed returns the bytes as frames from a number on.
func framed(seq uint64, b []byte) (frames []byte) {
	for chunk := range slices.Chunk(b, 4096) {
		frames = buffer.AppendFrame(frames, buffer.Frame{Seq: seq, Type: wire.Stdout, Payload: chunk})
		seq++
	}
	return frames
}

// payloadOf returns the payload of the frame that a packer has made.
func payloadOf(t testing.TB, frame []byte) []byte {
	t.Helper()
	f, n, err := buffer.Parse(frame)
	if err != nil || n != len(frame) || f.Seq != 0 || f.Type != session.Compressed {
		t.Fatalf("packed as %+v, %d of %d bytes, %v", f, n, len(frame), err)
	}
	return bytes.Clone(f.Payload)
}

// packedSize returns how many bytes stand for log, in writes of the given size.
func packedSize(t testing.TB, p *packer, log []byte, write int) (total int) {
	for chunk := range slices.Chunk(log, write) {
		frames := framed(1, chunk)
		if frame, ok := p.pack(time.Time{}, frames); ok {
			frames = frame
		}
		total += len(frames)
	}
	return total
}

// What is packed comes out again, whatever could not be packed in between, and
// after streams have ended.
func TestPack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	var p packer
	var u unpacker
	packed, begun := 0, 0
	for range 300 {
		var frames []byte
		switch rng.IntN(6) {
		case 0:
			frames = framed(1, noise(rng, 1+rng.IntN(60_000)))
		case 1:
			end := p.end()
			if end == nil {
				continue
			}
			if b, err := u.unpack(payloadOf(t, end)); len(b) > 0 || err != nil {
				t.Fatalf("the end of a stream holds %x, %v", b, err)
			}
			if u.zstd != nil {
				t.Error("something is kept of a stream that has ended")
			}
			continue
		default:
			frames = framed(rng.Uint64(), buildLog(rng, 1+rng.IntN(60_000)))
		}
		frame, ok := p.pack(time.Time{}, frames)
		if !ok {
			continue
		}
		if len(frame) >= len(frames) {
			t.Errorf("%d bytes packed into %d", len(frames), len(frame))
		}
		payload := payloadOf(t, frame)
		begun += int(payload[0] & flagBegins)
		packed++
		got, err := u.unpack(payload)
		if err != nil || !bytes.Equal(got, frames) {
			t.Fatalf("%d bytes came out as %d, %v", len(frames), len(got), err)
		}
	}
	if packed < 100 || begun < 10 || begun > packed/2 {
		t.Errorf("%d frames, %d of them the first of a stream", packed, begun)
	}
}

// The largest write that there is fits, or is left as it is.
func TestPackLargest(t *testing.T) {
	var p packer
	largest := buffer.AppendFrame(nil, buffer.Frame{Seq: 1, Payload: make([]byte, buffer.MaxPayload)})
	if frame, ok := p.pack(time.Time{}, largest); !ok || len(frame) > 100 {
		t.Errorf("zeros packed into %d bytes, %v", len(frame), ok)
	}
	largest = buffer.AppendFrame(nil, buffer.Frame{Seq: 1, Payload: noise(rand.New(rand.NewPCG(1, 0)), buffer.MaxPayload)})
	if _, ok := p.pack(time.Time{}, largest); ok {
		t.Error("noise is packed")
	}
	if _, ok := p.pack(time.Time{}, make([]byte, maxPacked+1)); ok {
		t.Error("more is packed than is taken")
	}
}

// golden are payloads of one carrier. They hold frames 7 and 8 of standard
// output, which say quicterm eight times each, and the end of the stream.
var golden = []string{
	"01 000050 28b52ffd 0040 0401008401000000000000000701000040717569637465726d57821f790154120326ba",
	"00 000050 7c00003000085e1c1665021006312194b020",
	"02 000000",
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnpackGolden(t *testing.T) {
	var u unpacker
	for i, text := range golden {
		var want []byte
		if i < 2 {
			want = buffer.AppendFrame(nil, buffer.Frame{
				Seq: uint64(7 + i), Type: wire.Stdout, Payload: []byte(strings.Repeat("quicterm", 8)),
			})
		}
		if got, err := u.unpack(unhex(t, text)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s holds %x, %v; want %x", text, got, err, want)
		}
	}
}

// Each payload follows those before it, on one carrier. All but the last are taken.
func TestUnpackRefuses(t *testing.T) {
	frames := framed(1, buildLog(rand.New(rand.NewPCG(1, 0)), 5000))
	var p packer
	pack := func() []byte {
		frame, ok := p.pack(time.Time{}, frames)
		if !ok {
			t.Fatal("not packed")
		}
		return payloadOf(t, frame)
	}
	first, second := pack(), pack()
	with := func(b []byte, at int, v byte) []byte {
		b = bytes.Clone(b)
		b[at] = v
		return b
	}
	end := []byte{flagEnds, 0, 0, 0}
	zstdOf := func(b []byte, opts ...zstd.EOption) []byte {
		var out bytes.Buffer
		w := must(zstd.NewWriter(&out, opts...))
		w.Write(b)
		w.Flush()
		return out.Bytes()
	}
	header := func(flags byte, n int) []byte { return []byte{flags, byte(n >> 16), byte(n >> 8), byte(n)} }
	tests := map[string][][]byte{
		"nothing":                 {{}},
		"half a header":           {first[:3]},
		"continues no stream":     {second},
		"continues after the end": {first, end, second},
		"no bytes":                {first, header(0, 100)},
		"no bytes at first":       {header(flagBegins, 100)},
		"no zstd":                 {append(header(flagBegins, 100), frames...)},
		"garbage continues":       {first, append(header(0, 100), frames...)},
		"shorter than it says":    {with(first, 3, first[3]+1)},
		"more behind":             {append(bytes.Clone(first), second[packedHeader:]...)},
		"not all of it":           {first, second[:len(second)-1]},
		"too long":                {append(header(flagBegins, maxPacked+1), zstdOf(make([]byte, maxPacked+1))...)},
		"far back":                {append(header(flagBegins, 100), zstdOf(make([]byte, 1<<20), zstd.WithWindowSize(1<<20))...)},
		"a bomb":                  {append(header(flagBegins, 100), zstdOf(make([]byte, 64<<20), zstd.WithWindowSize(zstdWindow))...)},
		"half a bomb":             {append(header(flagBegins, maxPacked), zstdOf(make([]byte, 64<<20), zstd.WithWindowSize(zstdWindow))...)},
	}
	for why, payloads := range tests {
		var u unpacker
		for i, payload := range payloads {
			_, err := u.unpack(payload)
			switch last := i == len(payloads)-1; {
			case !last && err != nil:
				t.Errorf("%s: payload %d: %v", why, i, err)
			case last && !errors.Is(err, ErrCompressed):
				t.Errorf("%s: error %v", why, err)
			}
		}
	}
	for n := range first {
		if b, err := new(unpacker).unpack(first[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken for %d", n, len(first), len(b))
		}
	}
}

// A peer cannot have more memory taken than for a frame and a window, however
// little it sends.
func TestUnpackBounds(t *testing.T) {
	var p packer
	var u unpacker
	frame, _ := p.pack(time.Time{}, framed(1, make([]byte, 120_000)))
	payload := payloadOf(t, frame)
	if len(payload) > 500 {
		t.Fatalf("the bomb has %d bytes", len(payload))
	}
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := u.unpack(payload); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if allocated > 2*maxPacked {
		t.Errorf("%d bytes taken for each frame", allocated)
	}
}

// FuzzUnpack gives an unpacker payloads, each behind its length in two bytes.
// The unpacked bytes are at most as many as allowed, and as many as the header says.
func FuzzUnpack(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		var u unpacker
		defer u.free()
		for len(b) >= 2 {
			n := min(int(b[0])<<8|int(b[1]), len(b)-2)
			payload := b[2 : 2+n]
			b = b[2+n:]
			got, err := u.unpack(payload)
			if err != nil {
				if !errors.Is(err, ErrCompressed) {
					t.Fatal(err)
				}
				return
			}
			if said := int(payload[1])<<16 | int(payload[2])<<8 | int(payload[3]); len(got) != said || said > maxPacked {
				t.Fatalf("%d bytes came out, %d said", len(got), said)
			}
		}
	})
}

func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 0))
	for _, kind := range []struct {
		name string
		log  []byte
	}{{"log", buildLog(rng, 8<<20)}, {"noise", noise(rng, 8<<20)}} {
		for _, write := range []int{1000, 8000, 60_000} {
			name := fmt.Sprintf("%s/%d", kind.name, write)
			var payloads [][]byte
			b.Run("pack/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(kind.log)))
				b.ReportAllocs()
				total := 0
				for b.Loop() {
					total = packedSize(b, new(packer), kind.log, write)
				}
				b.ReportMetric(float64(len(kind.log))/float64(total), "ratio")
			})
			var p packer
			for chunk := range slices.Chunk(kind.log, write) {
				if frame, ok := p.pack(time.Time{}, framed(1, chunk)); ok {
					payloads = append(payloads, payloadOf(b, frame))
				}
			}
			if len(payloads) == 0 {
				continue
			}
			b.Run("unpack/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(kind.log)))
				b.ReportAllocs()
				for b.Loop() {
					var u unpacker
					for _, payload := range payloads {
						if _, err := u.unpack(payload); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}
