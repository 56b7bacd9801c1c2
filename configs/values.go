package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Duration is written as in Go, "1h30m", or as "0". It is a struct so that TOML does
// not accept a bare number for it.
type Duration struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration: write it like 90s or 1h30m", b)
	}
	d.Duration = v
	return nil
}

// A Size is a number of bytes, written with the unit B, KiB, MiB or GiB, or as "0". It is
// a struct so that TOML does not accept a bare number for it.
type Size struct{ Bytes }

// Bytes is a number of bytes.
type Bytes int64

// A Share is a Size, or a part of the memory of the machine, written like 25%.
type Share struct {
	Size
	Percent int // 0 if it is a size
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Share) UnmarshalText(b []byte) error {
	digits, ok := strings.CutSuffix(string(b), "%")
	if !ok {
		s.Percent = 0
		return s.Size.UnmarshalText(b)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 8)
	if err != nil || n < 1 || n > 100 {
		return fmt.Errorf("%q is not a part: write it like 25%%, from 1%% to 100%%", b)
	}
	*s = Share{Percent: int(n)}
	return nil
}

// Of returns the share of a number of bytes.
func (s Share) Of(total Bytes) Bytes {
	if s.Percent > 0 {
		return total / 100 * Bytes(s.Percent)
	}
	return s.Bytes
}

func (s Share) String() string {
	if s.Percent > 0 {
		return strconv.Itoa(s.Percent) + "%"
	}
	return s.Bytes.String()
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"B", 1},
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(b []byte) error {
	text := string(b)
	if text == "0" {
		s.Bytes = 0
		return nil
	}
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || n > math.MaxInt64/uint64(u.bytes) {
			break
		}
		s.Bytes = Bytes(int64(n) * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size: write it like 512KiB or 64MiB", text)
}

func (b Bytes) String() string {
	for _, u := range []int{2, 1, 0} {
		if unit := sizeUnits[u]; b != 0 && int64(b)%unit.bytes == 0 {
			return strconv.FormatInt(int64(b)/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
