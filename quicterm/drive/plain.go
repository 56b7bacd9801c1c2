package drive

import (
	"context"
	"strings"

	"github.com/quicterm/quicterm/quicterm/client"
	"github.com/quicterm/quicterm/quicterm/screen"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// plainPiece is how many bytes are drawn at once: they scroll fewer rows than a screen keeps, except by a control
// sequence, whose rows are empty.
const plainPiece = 512

// PlainTail is Tail with the text that the terminal has shown, without control sequences: its lines, when they scroll
// off the screen, and at the end those that are left there. What a program has drawn over is not in it.
func PlainTail(
	ctx context.Context, c *client.Client, name string, since uint64, follow bool, f func(Chunk) error,
) error {
	var p plain
	last := Chunk{From: since, Next: since}
	err := tail(ctx, c, name, since, follow, p.resize, func(chunk Chunk) error {
		last = chunk
		if chunk.Text = p.draw(chunk.Text); chunk.Text == "" && chunk.Lost == 0 {
			return nil
		}
		return f(chunk)
	})
	if text := p.rest(); text != "" {
		if failed := f(Chunk{From: last.Next, Next: last.Next, Text: text}); failed != nil {
			return failed
		}
	}
	return err
}

// A plain draws output, and gives the rows that scroll off.
type plain struct {
	screen   *screen.Screen
	scrolled uint64 // rows that are given
	begun    bool   // a line, which has no end yet
}

func (p *plain) resize(size wire.Sizing) {
	cols, rows := int(size.Cols), int(size.Rows)
	switch {
	case cols == 0 || rows == 0: // no terminal
		cols, rows = 80, 24
	case p.screen != nil:
		p.screen.Resize(cols, rows)
		return
	}
	if p.screen == nil {
		p.screen = screen.New(cols, rows, screen.Limits{})
	}
}

func (p *plain) draw(output string) string {
	var text strings.Builder
	for len(output) > 0 {
		n := min(len(output), plainPiece)
		p.screen.Write([]byte(output[:n]))
		output = output[n:]
		now := p.screen.Scrolled()
		for y := -int(min(now-p.scrolled, uint64(p.screen.Lines()))); y < 0; y++ {
			p.give(&text, p.screen.Row(y))
		}
		p.scrolled = now
	}
	return text.String()
}

// rest returns the lines of the screen, without empty ones at the end.
func (p *plain) rest() string {
	if p.screen == nil {
		return ""
	}
	var text strings.Builder
	begun := p.begun
	for _, row := range p.screen.Rows(0) {
		p.give(&text, row)
	}
	if lines := strings.TrimRight(text.String(), "\n"); lines != "" || begun {
		return lines + "\n"
	}
	return ""
}

func (p *plain) give(text *strings.Builder, row screen.Row) {
	if p.begun && !row.Wrapped() {
		text.WriteByte('\n')
	}
	p.begun = true
	text.WriteString(row.Text())
}
