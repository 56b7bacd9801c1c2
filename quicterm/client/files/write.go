package files

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"github.com/quicterm/quicterm/quicterm/files"
)

// A source is a file of this machine or of a server that is read.
type source interface {
	io.ReaderAt
	io.Closer
}

// A target is a file of this machine or of a server that is written.
type target interface {
	io.WriterAt
	Truncate(size int64) error
}

// checkPart returns why nothing may be written to a part from an offset on, of which lstat says this, or nil.
func checkPart(info fs.FileInfo, err error, offset int64) error {
	if err == nil && info.Mode().IsRegular() && info.Size() >= offset {
		return nil
	}
	return errors.Join(err, errors.New("it was replaced while it was written"))
}

// writeFrom writes what the content has from an offset on, up to a limit, to a file of the size had, and ends the file
// there. Up to maxBlocks blocks are read and written at once. Of those behind what the file has, only the data is
// written. It calls wrote for each block, also from several goroutines at once, and returns the file's size.
func writeFrom(
	file target, had int64, content io.ReaderAt, offset, limit int64, maxBlocks int, wrote func(int64),
) (size int64, err error) {
	var mu sync.Mutex // guards what follows
	size = limit
	reached := had // where the file ends
	block := func(buf []byte, at int64) error {
		n, err := content.ReadAt(buf, at)
		if err != nil && err != io.EOF {
			return err
		}
		mu.Lock()
		if err == io.EOF {
			size = min(size, at+int64(n))
		}
		mu.Unlock()
		write := func(piece []byte, at int64) error {
			_, err := file.WriteAt(piece, at)
			mu.Lock()
			defer mu.Unlock()
			reached = max(reached, at+int64(len(piece)))
			return err
		}
		if at < had { // what is there may be of another file
			err = write(buf[:n], at)
		} else {
			err = nil
			for begin, piece := range files.Data(buf[:n]) {
				err = errors.Join(err, write(piece, at+begin))
			}
		}
		if err == nil {
			wrote(int64(n))
		}
		return err
	}
	next := offset
	take := func(last error) (at int64, more bool) { // by a goroutine that has done a block
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			err = last
		}
		at = next
		next += packetBytes
		return at, err == nil && at < size
	}
	var work sync.WaitGroup
	for range min(int64(maxBlocks), (limit-offset)/packetBytes+1) {
		work.Go(func() {
			buf := make([]byte, packetBytes)
			for at, more := take(nil); more; at, more = take(block(buf[:min(packetBytes, limit-at)], at)) {
			}
		})
	}
	work.Wait()
	if err == nil && reached != size {
		err = file.Truncate(size)
	}
	return size, err
}
