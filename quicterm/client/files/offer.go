package files

import (
	"errors"
	"io"
	"io/fs"

	"github.com/quicterm/quicterm/quicterm/files"
)

var (
	// errNotOffered says that the program that offered a file has stopped waiting.
	errNotOffered = errors.New("it is offered no more")

	errSize = errors.New("its size is another one than was offered")
)

// GetOffer writes a file that is offered to w, of as many bytes as were offered, and calls keep when all are written. It
// tells the server what comes of it. After an error keep was not called, or has failed.
func (f *Files) GetOffer(id uint64, size int64, w io.Writer, keep func() error) error {
	r, err := f.home(files.OfferDir)
	if err != nil {
		return err
	}
	name := files.Offer(id)
	saving := name + files.OfferSaving
	if err = r.rename(name, saving); errors.Is(err, fs.ErrNotExist) {
		return errNotOffered
	} else if err != nil {
		return err
	}
	file, err := r.Client.Open(r.path(saving))
	if err == nil {
		defer file.Close()
		rest := &bounded{w, size}
		if _, err = file.WriteTo(rest); err == nil && rest.left > 0 { // it reads ahead
			err = errSize
		}
	}
	err = r.reason(err)
	if err == nil {
		err = keep()
	}
	if err != nil {
		r.rename(saving, name+files.OfferFailed)
		return err
	}
	r.rename(saving, name+files.OfferSaved) // the file is kept if the program has stopped waiting
	return nil
}

// A bounded writes as many bytes as are left, and no more.
type bounded struct {
	io.Writer
	left int64
}

// Write implements [io.Writer].
func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errSize
	}
	return b.Writer.Write(p)
}

// RefuseOffer says on the server that a file is not wanted.
func (f *Files) RefuseOffer(id uint64) {
	if r, err := f.home(files.OfferDir); err == nil {
		r.remove(files.Offer(id))
	}
}
