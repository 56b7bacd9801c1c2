package predict

import "github.com/quicterm/quicterm/quicterm/screen"

// An Overlay is what to draw over the screen, in its rows and columns.
type Overlay struct {
	Cells  []Cell
	Cursor *Position // nil for the true one
}

// A Cell is drawn in place of the screen's.
type Cell struct {
	X, Y int
	screen.Cell
}

// A Position is one of the cursor.
type Position struct{ X, Y int }
