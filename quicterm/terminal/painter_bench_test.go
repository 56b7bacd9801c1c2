package terminal

import (
	"io"
	"testing"
	"time"

	"github.com/quicterm/quicterm/quicterm/terminal/predict"
	"github.com/quicterm/quicterm/quicterm/wire"
)

// BenchmarkKey types a key at a shell's prompt, which echoes it and tells a hint.
func BenchmarkKey(b *testing.B) {
	d := newDisplay(io.Discard, Config{})
	d.begin(wire.Size{Cols: 120, Rows: 40}, true, nil)
	d.endReplay()
	rtt := func() time.Duration { return 100 * time.Millisecond }
	d.predict(predict.New(predict.Always), predict.Always, rtt, func() {})
	frame := uint64(0)
	hint := func() {
		d.hinted(wire.Hint{In: frame, Out: frame, Terminal: wire.Shell | wire.UsualKeys, Context: 7})
	}
	drawn := 0
	for b.Loop() {
		frame++
		if frame%60 == 1 {
			d.Write([]byte("\r\n$ "))
			hint()
		}
		typeKeys(d, []byte("x"), frame)
		d.paint()
		if d.painter.painted {
			drawn++
		}
		d.Write([]byte("x"))
		hint()
	}
	d.restore(false)
	b.ReportMetric(float64(drawn)/float64(b.N), "drawn/key")
}
