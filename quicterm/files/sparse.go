package files

import (
	"bytes"
	"iter"
)

// blockBytes is the size of the blocks of most file systems, which keep no smaller hole.
const blockBytes = 4 << 10

var zeros [blockBytes]byte

// Data returns the pieces of a content that are not zeros, and where in it each begins. The rest of a new file becomes
// holes. Pieces begin at whole blocks.
func Data(content []byte) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		begin, end := 0, 0
		for at := 0; at < len(content); at += blockBytes {
			block := content[at:min(at+blockBytes, len(content))]
			if bytes.Equal(block, zeros[:len(block)]) {
				continue
			}
			if at > end {
				if end > begin && !yield(int64(begin), content[begin:end]) {
					return
				}
				begin = at
			}
			end = at + len(block)
		}
		if end > begin {
			yield(int64(begin), content[begin:end])
		}
	}
}
