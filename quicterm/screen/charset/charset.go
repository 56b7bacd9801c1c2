// Package charset has the character sets of terminals (ISO 2022), which programs select for ASCII characters.
package charset

// Sets are the character sets G0 to G3 by the final bytes that select them (0 for
// ASCII), and which of them is in use.
type Sets struct {
	G     [4]byte
	Level int
}

// Translates reports whether characters may stand for others.
func (c *Sets) Translates() bool { return c.G[c.Level] != 0 }

// Select makes a set one of G0 to G3. An unknown one is ASCII.
func (c *Sets) Select(level int, final byte) {
	if final != lineDrawing && national[final] == nil {
		final = 0
	}
	c.G[level] = final
}

// Translate returns what an ASCII character stands for.
func (c *Sets) Translate(b byte) rune {
	final := c.G[c.Level]
	if final == lineDrawing {
		if b >= '`' && b <= '~' {
			return drawing[b-'`']
		}
		return rune(b)
	}
	if set := national[final]; set != nil {
		for i := range len(replaced) {
			if replaced[i] == b {
				return set[i]
			}
		}
	}
	return rune(b)
}

const lineDrawing = '0'

// drawing is DEC's special graphics from ` to ~.
var drawing = []rune("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

// replaced are the characters that national sets replace (ISO 646, DEC VT220).
const replaced = `#@[\]^_` + "`{|}~"

var national = map[byte][]rune{
	'A': []rune(`£@[\]^_` + "`{|}~"), // British
	'4': []rune("£¾ĳ½|^_`¨ƒ¼´"),      // Dutch
	'C': finnish, '5': finnish,
	'R': []rune("£à°ç§^_`éùè¨"), // French
	'Q': []rune("#àâçêî_ôéùèû"), // French Canadian
	'K': []rune("#§ÄÖÜ^_`äöüß"), // German
	'Y': []rune("£§°çé^_ùàòèì"), // Italian
	'E': norwegian, '6': norwegian,
	'Z': []rune("£§¡Ñ¿^_`°ñç~"), // Spanish
	'H': swedish, '7': swedish,
	'=': []rune("ùàéçêîèôäöüû"), // Swiss
}

var (
	finnish   = []rune("#@ÄÖÅÜ_éäöåü")
	norwegian = []rune("#ÄÆØÅÜ_äæøåü")
	swedish   = []rune("#ÉÄÖÅÜ_éäöåü")
)
