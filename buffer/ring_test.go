package buffer

import (
	"bytes"
	"flag"
	"fmt"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// Random cases are the same in each run, so that a test that passes does so again. -rapid.seed=0 tries others.
func init() { flag.Set("rapid.seed", "1") }

// ringModel is what a Ring promises, done the plain way.
type ringModel struct {
	frames []Frame // all ever appended
	first  uint64
}

func (m *ringModel) offset(seq uint64) uint64 {
	var n uint64
	for _, f := range m.frames[:seq-1] {
		n += uint64(len(f.Payload))
	}
	return n
}

func TestRingAgainstModel(t *testing.T) {
	rapid.Check(t, checkRing)
}

func FuzzRing(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(checkRing))
}

func checkRing(t *rapid.T) {
	r := NewRing(0)
	m := &ringModel{first: 1}
	capacity := MinCapacity
	sizes := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 5000), rapid.IntRange(0, MaxPayload))
	seqs := func(label string) uint64 {
		return rapid.Uint64Range(0, uint64(len(m.frames))+2).Draw(t, label)
	}
	t.Repeat(map[string]func(*rapid.T){
		"append": func(t *rapid.T) {
			n := sizes.Draw(t, "bytes")
			for range rapid.IntRange(1, 20).Draw(t, "times") {
				f := Frame{
					Seq:     uint64(len(m.frames)) + 1,
					Type:    Type(n),
					Payload: bytes.Repeat([]byte{byte(len(m.frames))}, n),
				}
				fits := n < r.Room()
				before := r.First()
				if seq := r.Append(f.Type, f.Payload); seq != f.Seq {
					t.Fatalf("Append returned %d, want %d", seq, f.Seq)
				}
				if fits && r.First() != before {
					t.Fatalf("%d bytes fit, but frames %d to %d left for them", n, before, r.First()-1)
				}
				m.frames = append(m.frames, f)
				if r.First() < m.first || r.First() > f.Seq {
					t.Fatalf("first = %d after appending %d, was %d", r.First(), f.Seq, m.first)
				}
				m.first = r.First()
			}
		},
		"capacity": func(t *rapid.T) {
			capacity = rapid.IntRange(0, 4*MinCapacity).Draw(t, "capacity")
			r.SetCapacity(capacity)
			if capacity = max(capacity, MinCapacity); r.Capacity() != capacity || r.First() < m.first {
				t.Fatalf("capacity %d from frame %d on, want %d from at least %d", r.Capacity(), r.First(), capacity, m.first)
			}
			m.first = r.First()
		},
		"release": func(t *rapid.T) {
			before := seqs("before")
			r.Release(before)
			m.first = max(m.first, min(before, uint64(len(m.frames))+1))
		},
		"slice": func(t *rapid.T) {
			from, limit := seqs("from"), rapid.IntRange(0, 100<<10).Draw(t, "limit")
			b, next := r.Slice(from, limit)
			if from < m.first || from > uint64(len(m.frames)) {
				if b != nil || next != from {
					t.Fatalf("Slice(%d) of frames not held = %d bytes, %d", from, len(b), next)
				}
				return
			}
			if next == from || next > from+1 && len(b) > limit {
				t.Fatalf("Slice(%d, %d) = %d bytes, up to %d", from, limit, len(b), next)
			}
			for seq := from; seq < next; seq++ {
				f, n, err := Parse(b)
				if err != nil || !equalFrames(f, m.frames[seq-1]) {
					t.Fatalf("frame %d = %v, %v; want %v", seq, f, err, m.frames[seq-1])
				}
				b = b[n:]
			}
			if len(b) > 0 {
				t.Fatalf("%d bytes behind frame %d", len(b), next-1)
			}
		},
		"offset": func(t *rapid.T) {
			seq := max(m.first, min(seqs("seq"), r.Next()))
			want := m.offset(seq)
			if got := r.Offset(seq); got != want {
				t.Fatalf("Offset(%d) = %d, want %d", seq, got, want)
			}
			found := r.Find(want)
			if found > seq || m.offset(found) != want && found != m.first {
				t.Fatalf("Find(%d) = %d (offset %d), want at most %d", want, found, m.offset(found), seq)
			}
			size := 0
			for _, f := range m.frames[seq-1:] {
				size += Overhead + len(f.Payload)
			}
			if got := r.Size(seq); got != size {
				t.Fatalf("Size(%d) = %d, want %d", seq, got, size)
			}
		},
		"": func(t *rapid.T) {
			if r.First() != m.first || r.Next() != uint64(len(m.frames))+1 {
				t.Fatalf("holds %d to %d, want %d to %d", r.First(), r.Next(), m.first, len(m.frames)+1)
			}
			held := 0
			for _, s := range r.segments {
				held += cap(s.buf) + indexEntry*cap(s.index)
			}
			if held != r.Memory() || held > capacity {
				t.Fatalf("takes %d bytes, says %d, may take %d", held, r.Memory(), capacity)
			}
			for _, s := range r.segments {
				if len(s.index) > cap(s.buf)/indexBytes+1 {
					t.Fatalf("index of %d entries outgrew its segment", len(s.index))
				}
			}
		},
	})
}

// A full ring lets the oldest go, and knows exactly which and how much.
func TestRingOverflow(t *testing.T) {
	r := NewRing(1 << 20)
	line := bytes.Repeat([]byte("x"), 1000)
	for range 5000 {
		r.Append(1, line)
	}
	first := r.First()
	if first == 1 || r.Offset(first) != (first-1)*1000 {
		t.Errorf("first = %d at offset %d, want a later one at its offset", first, r.Offset(first))
	}
	if kept := r.Size(first); kept < 800<<10 {
		t.Errorf("only %d bytes kept of 1 MiB", kept)
	}
}

// Returned slices stay unchanged, whatever the ring does later.
func TestRingSlicesStayValid(t *testing.T) {
	r := NewRing(0)
	r.Append(1, []byte("first"))
	b, _ := r.Slice(1, 100)
	want := bytes.Clone(b)
	for range 1000 {
		r.Append(2, make([]byte, 4096))
	}
	r.Release(r.Next())
	r.Append(3, []byte("later"))
	if !bytes.Equal(b, want) {
		t.Error("a slice changed after its frame left")
	}
}

// A session that is read as it writes, like one at rest, takes next to nothing.
func TestRingShrinks(t *testing.T) {
	r := NewRing(64 << 20)
	for range 1000 {
		r.Append(1, make([]byte, 32<<10))
	}
	for range 10 {
		r.Release(r.Next())
		r.Append(1, []byte("$ "))
	}
	if r.Memory() > 8<<10 {
		t.Errorf("takes %d bytes at rest", r.Memory())
	}
}

// BenchmarkRingAppend compares with the least that anyone could do: copying
// the same bytes into memory of the same size and computing their CRC.
func BenchmarkRingAppend(b *testing.B) {
	const capacity = 64 << 20
	for _, size := range []int{64, 1 << 10, 4 << 10, 32 << 10} {
		payload := bytes.Repeat([]byte("quicterm"), size/8)
		b.Run(fmt.Sprintf("append/%d", size), func(b *testing.B) {
			r := NewRing(capacity)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r.Append(1, payload)
			}
		})
		b.Run(fmt.Sprintf("bare/%d", size), func(b *testing.B) {
			memory := make([]byte, capacity)
			var sum uint32
			pos := 0
			b.SetBytes(int64(size))
			for b.Loop() {
				if pos+size > len(memory) {
					pos = 0
				}
				copy(memory[pos:], payload)
				sum = crc32.Update(0, castagnoli, memory[pos:pos+size])
				pos += size
			}
			_ = sum
		})
	}
}
