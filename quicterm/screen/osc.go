package screen

import (
	"slices"
	"strconv"
	"strings"

	"github.com/quicterm/quicterm/quicterm/screen/marks"
	"github.com/quicterm/quicterm/quicterm/screen/vt"
)

// colors are the colours that the program changed: the specification by the number
// of the OSC that sets it, with the index for OSC 4 as in "4;1".
type colors map[string]string

const (
	maxColor  = 64 // bytes of a colour's specification
	maxTitle  = 1 << 10
	maxTitles = 20 // xterm's stack has 10
)

// String obeys OSC, and shows where an image is. Other strings are settings, which are skipped.
func (h *handler) String(kind byte, data []byte, part vt.Part) {
	s := (*Screen)(h)
	s.repeat = false
	if part&vt.First != 0 {
		if image, stays := vt.Image(kind, data); image {
			s.placeImage(stays)
		}
	}
	if kind == ']' && part == vt.Whole {
		s.command(string(data))
	}
}

// imageWord stands for an image.
const imageWord = "[image]"

// placeImage shows where an image is, within the row. Its size is not known in rows, and the program goes on from what
// its terminal does with the cursor. The cursor is left behind the word, unless it stays, so that text that goes on from
// there does not hide it.
func (s *Screen) placeImage(stays bool) {
	pen, x := s.pen, s.x
	s.setPen(Style{Attributes: Dim})
	for _, c := range imageWord[:min(len(imageWord), max(s.rightEdge()-s.x, 0))] {
		s.place(cell(c), 1)
	}
	s.setPen(pen)
	s.repeat = false
	if stays {
		s.x = x
	} else {
		s.covered()
	}
}

func (s *Screen) command(text string) {
	number, value, _ := strings.Cut(text, ";")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	if n == 133 || n == 633 {
		if line, told := marks.Line(value); told && !s.Alternate() {
			s.typed.told = bounded(line)
		}
		s.mark(marks.Parse(value))
	} else if text, ok := marks.Notification(number, value); ok && s.listener != nil {
		s.listener.Notification(text)
	}
	switch n {
	case 0, 2:
		s.setTitle(value)
	case 4:
		s.setPalette(value)
	case 7, 633, 1337:
		s.directory = marks.Directory(s.directory, n, value)
	case 8:
		s.setLink(value)
	case 10, 11, 12, 13, 14, 17, 19: // a list of colours, for this number and the next ones
		for spec := range strings.SplitSeq(value, ";") {
			if n > 19 {
				break
			}
			s.setColor(strconv.Itoa(n), spec)
			n++
		}
	case 104:
		s.resetPalette(value)
	case 110, 111, 112, 113, 114, 117, 119:
		delete(s.colors, strconv.Itoa(n-100))
	}
}

func (s *Screen) setTitle(title string) {
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "")
	}
	s.title = title
}

// A pushedTitle is an entry of the stack of titles.
type pushedTitle struct {
	which int    // 0 for the window's title and the icon's name, 1 for the name, 2 for the title
	title string // of the window
}

// windowOperation is XTWINOPS, of which 22 and 23 push and pop the title.
func (s *Screen) windowOperation(operation, which int) {
	if which > 2 {
		return
	}
	switch operation {
	case 22:
		if len(s.titles) == maxTitles {
			s.titles = slices.Delete(s.titles, 0, 1)
		}
		s.titles = append(s.titles, pushedTitle{which, s.title})
	case 23:
		if which != 1 {
			s.popTitle(1)
		}
		if which != 2 {
			s.popTitle(2)
		}
	}
}

// popTitle removes the newest entry that has more than the other one of title and name. The rest
// of an entry that has both stays.
func (s *Screen) popTitle(other int) {
	for i, t := range slices.Backward(s.titles) {
		if t.which == other {
			continue
		}
		if other == 1 {
			s.title = t.title
		}
		if t.which == 0 {
			s.titles[i].which = other
		} else {
			s.titles = slices.Delete(s.titles, i, i+1)
		}
		return
	}
}

func (s *Screen) setPalette(pairs string) {
	list := strings.Split(pairs, ";")
	for i := 0; i+1 < len(list); i += 2 {
		if index, err := strconv.ParseUint(list[i], 10, 8); err == nil {
			s.setColor("4;"+strconv.FormatUint(index, 10), list[i+1])
		}
	}
}

func (s *Screen) resetPalette(indices string) {
	for key := range s.colors {
		if indices == "" && strings.HasPrefix(key, "4;") {
			delete(s.colors, key)
		}
	}
	for index := range strings.SplitSeq(indices, ";") {
		delete(s.colors, "4;"+index)
	}
}

func (s *Screen) setColor(key, spec string) {
	if spec == "" || spec == "?" || len(spec) > maxColor {
		return
	}
	if s.colors == nil {
		s.colors = make(colors)
	}
	s.colors[key] = spec
}

// A Hyperlink is the target of a Link.
type Hyperlink struct {
	URI        string
	Parameters string // as OSC 8 has them, with an id
}

// maxLinks bounds the hyperlinks on the screen and in the scrollback. Further ones are shown as text.
const maxLinks = 1024

// Hyperlink returns what a Link stands for.
func (s *Screen) Hyperlink(l Link) Hyperlink {
	if int(l) >= len(s.links.List) {
		return Hyperlink{}
	}
	return s.links.List[l]
}

// setLink obeys OSC 8.
func (s *Screen) setLink(value string) {
	parameters, uri, found := strings.Cut(value, ";")
	if !found {
		return
	}
	pen := s.pen
	pen.Link = 0
	if uri != "" {
		id, _ := s.links.ID(Hyperlink{URI: uri, Parameters: strings.TrimSpace(parameters)}, maxLinks)
		pen.Link = Link(id)
	}
	s.setPen(pen)
}
