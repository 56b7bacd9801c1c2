package screen

import "github.com/clipperhouse/displaywidth"

// RuneWidth returns how many columns a printable character takes: 0 combines with the one
// before it. As xterm and tmux it looks at each character alone, not at grapheme clusters.
func RuneWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r >= 0x2500 && r < 0x25fd, r >= 0x1f1e6 && r <= 0x1f1ff: // drawing, halves of flags
		return 1
	case r >= 0x4e00 && r < 0xa000, r >= 0xac00 && r < 0xd7a4: // Han, Hangul
		return 2
	case r >= 0x1160 && r < 0x1200: // vowels and finals of Hangul syllables
		return 0
	}
	return displaywidth.Rune(r)
}
