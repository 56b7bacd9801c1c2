package main

import (
	"context"
	"fmt"
	"strings"

	"rsc.io/qr"

	"github.com/quicterm/quicterm/quicterm/auth"
	"github.com/quicterm/quicterm/quicterm/client/reach"
	"github.com/quicterm/quicterm/quicterm/terminal"
	"github.com/quicterm/quicterm/quicterm/wire"
)

const (
	// qrQuiet is the light margin of a code in modules, as ISO/IEC 18004 asks for.
	qrQuiet = 4

	// maxQRWidth is the width of the narrowest terminal that shows a code, in modules of one column each.
	maxQRWidth = 80

	// blackOnWhite are colours of the palette that no theme changes: phones read a dark code on light best.
	blackOnWhite = "\x1b[38;5;16;48;5;231m"
	asBefore     = "\x1b[0m"
)

// halves show two modules in one character, the upper one is bit 0, and dark is 1.
var halves = [...]string{" ", "▀", "▄", "█"}

// drawQR returns the lines of a QR code for a terminal. Codes are as small as they can be: what shows them is not torn.
func drawQR(text string) (lines []string, err error) {
	code, err := qr.Encode(text, qr.L)
	if err == nil && code.Size+2*qrQuiet > maxQRWidth {
		err = fmt.Errorf("its code is wider than %d columns", maxQRWidth)
	}
	if err != nil {
		return nil, err
	}
	dark := func(x, y int) int {
		if code.Black(x, y) { // no module outside of the code is
			return 1
		}
		return 0
	}
	for y := -qrQuiet; y < code.Size+qrQuiet; y += 2 {
		line := new(strings.Builder)
		for x := -qrQuiet; x < code.Size+qrQuiet; x++ {
			line.WriteString(halves[dark(x, y)|dark(x, y+1)<<1])
		}
		lines = append(lines, blackOnWhite+line.String()+asBefore)
	}
	return lines, nil
}

// printLink has a host accept a link to its page, and prints that on the terminal and nowhere else: it is a secret.
func printLink(ctx context.Context, host, session, page string, opts *options) error {
	if err := checkPage(page); err != nil {
		return err
	}
	tty, err := terminal.OpenTTY()
	if err != nil {
		return fmt.Errorf(needsTerminal, "qt web --qr")
	}
	defer tty.Close()
	return reach.With(ctx, host, &opts.Options, func(ctx context.Context, a *reach.Access) error {
		l, err := newLink(ctx, a, host, session, page)
		if err != nil {
			return err
		}
		req := &wire.Enroll{Kind: auth.KindLink, Key: l.Seed.Signer().PublicKey().Marshal(), Name: "link"}
		if _, err := a.Client.Enroll(ctx, req); err != nil {
			return err
		}
		fmt.Fprintf(tty, "%s\r\n", l)
		lines, err := drawQR(l.String())
		if err != nil {
			say("there is no QR code: %v", err)
		}
		for _, line := range lines {
			fmt.Fprintf(tty, "%s\r\n", line)
		}
		say("the link is good once, for 2 minutes, and logs in as %s: show it to nobody else", a.Target.User)
		return nil
	})
}
