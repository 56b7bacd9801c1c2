package screen

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// FuzzScreen checks that no output breaks a Screen, and that chunks make no difference.
func FuzzScreen(f *testing.F) {
	for _, s := range []string{
		"hello\r\nworld\x1b[2;3H\x1b[31mred\x1b[m\x1b[J",
		"宽字符\x1b[2G\x1b[P\x1b[@x\x1b[1;2H\x1b[Xe\u0301\u200d",
		"\x1b[?69h\x1b[2;6s\x1b[2;4r0123456789\n\n\n\x1b[S\x1b[T\x1b[L\x1b[M\x1b[2'}\x1b6\x1b9",
		"\x1b[?1049hvim\x1b[?1049l\x1b7\x1b[99;99H\x1b8\x1b[3b\x1b[999999999b",
		"\x1b]0;title\a\x1b]8;id=1;http://a.example/\alink\x1b]8;;\a\x1b]4;1;red\a\x1b]104\a",
		"\x1b[>5u\x1b[<u\x1b[=3;2u\x1b[?2026h\x1b[?25s\x1b[?25r\x1b[22t\x1b[23t\x1b(0lqk\x0e",
		"\n\n\n\n\n\n\n\n\n\nlines\x1b[3J\x1b#8\x1b[!p\x1bc",
	} {
		f.Add([]byte(s), []byte{1, 0, 9}, uint8(10), uint8(4), uint8(7), uint8(6))
	}
	f.Fuzz(func(t *testing.T, output, sizes []byte, cols, rows, newCols, newRows uint8) {
		limits := Limits{Lines: 20, Bytes: 64 << 10}
		whole, chunked := New(int(cols), int(rows), limits), New(int(cols), int(rows), limits)
		for part := range slices.Chunk(output, len(output)/2+1) {
			whole.Write(part)
			for i := 0; len(part) > 0; i++ {
				n := len(part)
				if len(sizes) > 0 {
					n = min(n, 1+int(sizes[i%len(sizes)]))
				}
				chunked.Write(part[:n])
				part = part[n:]
				checkInvariants(t, chunked)
			}
			if diff := compare(chunked.Dump(), whole.Dump()); diff != "" {
				t.Fatalf("in chunks, instead of at once: %s", diff)
			}
			whole.Resize(int(newCols), int(newRows))
			chunked.Resize(int(newCols), int(newRows))
			checkInvariants(t, whole)
		}
	})
}

// TestAnyOutput writes random output, with many beginnings and ends of sequences, to Screens of random
// sizes. SCREEN_CASES says how many, instead of a few thousand.
func TestAnyOutput(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("SCREEN_CASES"))
	seed := chosenSeed()
	for i := range max(count, 5000) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		s := New(r.IntN(30), r.IntN(12), Limits{Lines: 1 + r.IntN(30), Bytes: 1 << r.IntN(20)})
		var output []byte
		for range 1 + r.IntN(3) {
			output = randomOutput(r, output[:0])
			for len(output) > 0 {
				n := 1 + r.IntN(len(output))
				s.Write(output[:n])
				output = output[n:]
			}
			checkInvariants(t, s)
			s.Resize(r.IntN(30), r.IntN(12))
			checkInvariants(t, s)
		}
		if t.Failed() {
			t.Fatalf("seed %d, case %d", seed, i)
		}
	}
}

func randomOutput(r *rand.Rand, b []byte) []byte {
	const prefixes, intermediates, controls = "?><=", " !\"#$%'()*+-.", "\b\t\n\r\v\f\x0e\x0f\x18\x1a\x1b\x7f\x00"
	texts := []string{
		"x", "text ", "0123456789012345678901234567890123456789", "宽", "宽字符", "e\u0301", "\u0301",
		"😀\u200d", "\xff", "\xe5", "\u0085", "\u009b",
	}
	modes := []int{1, 4, 5, 6, 7, 12, 20, 25, 45, 47, 66, 69, 1000, 1006, 1047, 1048, 1049, 2004, 2026}
	commands := []string{
		"0;title", "2;", "4;1;red;2;?", "104", "8;id=1;http://a.example/", "8;;", "10;red;blue", "110",
		"7;file:///", "133;A", "133;B", "133;C", "133;D", "633;D;7", "633;P;Cwd=/x", "52;c;eA==", "1337;File=:eA==",
	}
	for range r.IntN(40) {
		switch r.IntN(8) {
		case 0:
			b = append(b, controls[r.IntN(len(controls))])
		case 1, 2:
			b = append(b, "\x1b["...)
			if r.IntN(4) == 0 {
				b = append(b, prefixes[r.IntN(len(prefixes))])
			}
			for range r.IntN(4) {
				b = strconv.AppendInt(b, int64(r.Uint32()>>(r.IntN(32))), 10)
				b = append(b, ";;;:"[r.IntN(4)])
			}
			if r.IntN(6) == 0 {
				b = append(b, intermediates[r.IntN(len(intermediates))])
			}
			b = append(b, byte('@'+r.IntN('~'-'@'+1)))
		case 3:
			b = fmt.Appendf(b, "\x1b[?%d%c", modes[r.IntN(len(modes))], "hlsr"[r.IntN(4)])
		case 4:
			b = append(b, '\x1b')
			if r.IntN(2) == 0 {
				b = append(b, intermediates[r.IntN(len(intermediates))])
			}
			b = append(b, byte('0'+r.IntN('~'-'0'+1)))
		case 5:
			b = append(b, "\x1b]"+commands[r.IntN(len(commands))]+[]string{"\a", "\x1b\\", "\x18", ""}[r.IntN(4)]...)
		default:
			b = append(b, texts[r.IntN(len(texts))]...)
		}
	}
	return b
}

// checkInvariants checks what must hold after any output.
func checkInvariants(t testing.TB, s *Screen) {
	t.Helper()
	if s.x < 0 || s.x > s.cols || s.y < 0 || s.y >= s.rows {
		t.Fatalf("the cursor is at %d, %d of %d, %d", s.x, s.y, s.cols, s.rows)
	}
	// The newest block stays, whatever the limit.
	if h := &s.history; h.lines > s.limits.Lines || h.bytes > s.limits.Bytes+blockBytes {
		t.Fatalf("%d lines, %d bytes of scrollback", s.history.lines, s.history.size())
	}
	for _, b := range []*buffer{s.main, s.alt} {
		if b == nil {
			continue
		}
		if b.top < 0 || b.top >= b.bottom && s.rows > 1 || b.bottom >= s.rows ||
			b.left < 0 || b.left >= b.right || b.right >= s.cols {
			t.Fatalf("margins %d to %d, %d to %d of %d, %d", b.top, b.bottom, b.left, b.right, s.cols, s.rows)
		}
		for y := range s.rows {
			checkRow(t, s, b.row(y))
		}
	}
	for i := range s.history.lines {
		r := s.Row(i - s.history.lines)
		checkRow(t, s, &r.r)
	}
}

func checkRow(t testing.TB, s *Screen, r *row) {
	t.Helper()
	for x, c := range r.cells {
		if int(c.style()) >= len(s.styles.List) || c&clusterFlag != 0 && int(c&charMask) >= len(s.clusters.List) {
			t.Fatalf("cell %d has an unknown style or cluster: %#x", x, uint64(c))
		}
		if wide := r.isWide(x); wide != (x+1 < len(r.cells) && r.isSpacer(x+1)) {
			t.Fatalf("half of a wide character in column %d of %d", x, len(r.cells))
		}
	}
	if len(r.cells) > 0 && r.isSpacer(0) {
		t.Fatal("half of a wide character in column 0")
	}
}

// TestMemoryIsBounded writes what makes new styles, clusters and links without end.
func TestMemoryIsBounded(t *testing.T) {
	s := New(80, 24, Limits{Lines: 100})
	var out []byte
	for i := range 20_000 {
		out = out[:0]
		out = append(out, "\x1b[38;2;"...)
		for k := range 3 {
			out = append(out, '0'+byte(i>>(3*k)&7), ";m"[k/2])
		}
		out = append(out, 'e')
		for k := range 4 {
			out = append(out, string(rune(0x300+i>>(4*k)&15))...)
		}
		out = append(out, "\x1b]8;;http://"...)
		for k := range 5 {
			out = append(out, 'a'+byte(i>>(4*k)&15))
		}
		s.Write(append(out, '\a'))
	}
	if n := s.styles.Size() + s.clusters.Size() + s.links.Size(); n > 10_000 {
		t.Errorf("%d styles, clusters and links", n)
	}
	checkInvariants(t, s)
}

// FuzzOutput checks that no output breaks a Screen, its snapshots and what undoes it. It checks less
// than the others, and so it tries more.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("\x1b[?1049h宽\x1b[2;4r\x1b[31mred\x1b[m\x1b]0;t\a\x1b[5b"), uint8(0x53))
	f.Fuzz(func(t *testing.T, output []byte, size uint8) {
		s := New(int(size>>4), int(size&15), Limits{Lines: 20, Bytes: 64 << 10})
		s.Write(output)
		checkInvariants(t, s)
		s.Snapshot(Snapshot{Lines: 10})
		s.Write(s.Undo())
		s.Resize(int(size&15)+2, int(size>>4))
		checkInvariants(t, s)
	})
}
