package predict

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// A model is how predictions are made.
type model uint8

const (
	application model = iota // learned
	editor                   // a shell's line editor: confident
	cooked                   // the kernel's line editor: certain
	secret                   // none
)

// usual returns the classes that a model trusts until they were wrong.
func (m model) usual(alternate bool) []class {
	switch {
	case m == cooked:
		return []class{printable, wide, backspace, killStart, killWord}
	case m == application && alternate:
		return []class{printable, wide, insert, backspace, backspaceInside, left, right}
	}
	return []class{
		printable, wide, insert, backspace, backspaceInside, left, right, home, end, deleteKey, killEnd,
	}
}

// modelOf returns the model for what is typed at the cursor.
func (p *Predictor) modelOf(s *screen.Screen) model {
	kernel := p.hint.Terminal&wire.Canonical != 0
	if p.hinted && kernel && p.hint.Terminal&wire.Echo == 0 || p.asksSecret(s) {
		return secret
	}
	if kernel {
		return cooked
	}
	if in, _ := s.InputZone(); in || p.hint.Terminal&wire.Shell != 0 {
		return editor
	}
	return application
}

// secrets are parts of what a secret is called, in lower case.
var secrets = []string{
	"pass", "token", "secret", "contraseña", "senha", "wort", "пароль", "密码", "密碼", "パスワード", "暗証番号", "암호", "비밀번호",
}

// namesSecret reports whether a text names a secret. Short names count as whole words only.
func namesSecret(text string) bool {
	text = strings.ToLower(text)
	if slices.ContainsFunc(secrets, func(name string) bool { return strings.Contains(text, name) }) {
		return true
	}
	noWord := func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_') }
	for word := range strings.FieldsFuncSeq(text, noWord) {
		if word == "pin" || word == "code" || strings.HasSuffix(word, "otp") {
			return true
		}
	}
	return false
}

// endings are the characters that end a question.
const endings = ":：?>"

// endsInQuestion reports whether a text ends in a question for a secret.
func endsInQuestion(text string) bool {
	last, size := utf8.DecodeLastRuneInString(text)
	if !strings.ContainsRune(endings, last) {
		return false
	}
	text = text[:len(text)-size]
	return namesSecret(text[strings.LastIndexAny(text, endings)+1:])
}

// labelsSecret reports whether a row of the screen may be the label of a field for a secret.
func labelsSecret(s *screen.Screen) bool {
	_, rows := s.Size()
	for y := range rows {
		if namesSecret(s.Row(y).Text()) {
			return true
		}
	}
	return false
}

// asksSecret reports whether the text in front of what is typed asks for a secret.
func (p *Predictor) asksSecret(s *screen.Screen) bool {
	x, y := s.Cursor()
	if p.start.set && anchorOf(s, y) == p.start.row {
		x = min(x, p.start.x)
	}
	text := strings.TrimRight(textBefore(s.Row(y), x), " *•●") // what stands for typed characters is no part
	if !strings.ContainsAny(text[max(len(text)-3, 0):], endings) {
		return false // most rows
	}
	if s.Row(y).Wrapped() && y > 0 {
		text = s.Row(y-1).Text() + text
	}
	return endsInQuestion(text)
}

func textBefore(row screen.Row, x int) string {
	b := make([]byte, 0, x)
	for i := range min(x, row.Len()) {
		switch c := row.Cell(i); {
		case blank(c):
			b = append(b, ' ')
		default:
			b = append(b, c.Text...)
		}
	}
	return string(b)
}
