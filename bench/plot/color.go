package plot

import (
	"hash/fnv"
	"image/color"
)

var (
	dark = color.Gray{0x40} // of lines across a chart, and their labels
	pale = color.Gray{0xd8} // of the grid
)

// programs are colours that people who see fewer of them can tell apart as well
// (Okabe and Ito).
var programs = map[string]color.Color{
	"quicterm": color.RGBA{0x00, 0x72, 0xb2, 0xff}, // blue
	"ssh":      color.RGBA{0x00, 0x00, 0x00, 0xff},
	"mosh":     color.RGBA{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	"et":       color.RGBA{0x00, 0x9e, 0x73, 0xff}, // green
	"tssh":     color.RGBA{0xcc, 0x79, 0xa7, 0xff}, // purple
	"tssh-kcp": color.RGBA{0xe6, 0x9f, 0x00, 0xff}, // orange
}

// others are for programs that have no colour of their own yet.
var others = []color.Color{
	color.RGBA{0x99, 0x99, 0x99, 0xff}, // grey
	color.RGBA{0x56, 0xb4, 0xe9, 0xff}, // sky blue
}

// Program returns the colour of a program.
func Program(name string) color.Color {
	if c, ok := programs[name]; ok {
		return c
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return others[h.Sum32()%uint32(len(others))]
}

// Step returns the colour of series i of n that follow from one another, as loss
// rates do: from light blue to dark red, by way of purple.
func Step(i, n int) color.Color {
	from, via, to := [3]float64{0x56, 0xb4, 0xe9}, [3]float64{0x6a, 0x3d, 0x9a}, [3]float64{0xb0, 0x10, 0x20}
	share := 2 * float64(i) / float64(max(n-1, 1))
	if share > 1 {
		from, via, share = via, to, share-1
	}
	var mixed [3]uint8
	for k := range mixed {
		mixed[k] = uint8(from[k] + share*(via[k]-from[k]))
	}
	return color.RGBA{mixed[0], mixed[1], mixed[2], 0xff}
}
