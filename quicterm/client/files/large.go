package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/quicterm/quicterm/quicterm/files"
)

// maxHashes bounds the ranges of a file that are hashed at once.
const maxHashes = 8

var errShorter = errors.New("it became shorter while it was read")

// ownerWrites is the permission that a part needs to be written, also of a file that has it no more.
const ownerWrites = 0o200

// copyLarge copies a file by a part of it, which stays there if the copy fails.
func (c *copier) copyLarge(j job) error {
	part := files.PartOf(j.to)
	offset := int64(0)
	if c.Resume {
		var err error
		if offset, err = c.same(j, part); err != nil {
			return err
		}
	}
	if offset == 0 {
		a := c.attributes(j.info)
		if err := c.to.put(part, files.Attributes{Mode: a.Mode | ownerWrites, Exact: a.Exact}, nil); err != nil {
			return err
		}
	}
	content, err := j.from.open(j.name)
	if err != nil {
		return ofSource(err)
	}
	defer content.Close()
	c.progress.Bytes.Add(offset)
	c.progress.Resumed.Add(offset)
	limit := j.info.Size()
	if limit <= files.MaxPut { // it has grown, or does not tell its size, as those of /proc
		limit = math.MaxInt64
	}
	size, err := c.to.write(part, &input{c.ctx, content}, offset, limit, func(n int64) { c.progress.Bytes.Add(n) })
	if err != nil {
		var ended *EndedError
		switch {
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case errors.As(err, &ended):
			return err
		}
		told := fmt.Errorf("%s (a part of it is there: --resume continues)", files.Reason(err))
		if errors.As(err, new(*sourceError)) {
			return ofSource(told)
		}
		return told
	}
	if size < j.info.Size() {
		return ofSource(errShorter)
	}
	if info, err := c.to.lstat(part); err != nil || info.Size() != size {
		return errors.Join(err, errors.New("its part was changed while it was written: does another copy write it?"))
	}
	if c.Preserve {
		err = errors.Join(c.to.chmod(part, j.info.Mode().Perm()), c.to.setTime(part, j.info))
	} else {
		err = c.narrow(part, j.info.Mode().Perm())
	}
	if err != nil {
		return err
	}
	return c.to.rename(part, j.to)
}

// An input is a source that is read until the context ends.
type input struct {
	ctx context.Context
	r   io.ReaderAt
}

// ReadAt implements [io.ReaderAt].
func (i *input) ReadAt(p []byte, offset int64) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	n, err := i.r.ReadAt(p, offset)
	if err != nil && err != io.EOF {
		err = ofSource(err)
	}
	return n, err
}

// same returns how many bytes of a part are those of the file, up to the end of a range: what follows is copied again.
// A part is written by several requests at once, so it may have holes.
func (c *copier) same(j job, part string) (int64, error) {
	info, err := c.to.lstat(part)
	if err != nil || !info.Mode().IsRegular() {
		return 0, nil
	}
	size := min(info.Size(), j.info.Size())
	ranges := int(size / files.MaxHash) // whole ones
	equal := 0
	for equal < ranges && c.ctx.Err() == nil {
		batch := min(maxHashes, ranges-equal)
		good := make([]bool, batch)
		errs := make([]error, batch)
		var work sync.WaitGroup
		for i := range batch {
			work.Go(func() {
				offset := uint64(equal+i) * files.MaxHash
				theirs, err := j.from.hash(j.name, offset, files.MaxHash)
				if err != nil {
					errs[i] = ofSource(err)
					return
				}
				ours, err := c.to.hash(part, offset, files.MaxHash)
				good[i], errs[i] = ours == theirs, err
			})
		}
		work.Wait()
		for i := range batch {
			if errs[i] != nil || !good[i] {
				return int64(equal) * files.MaxHash, errs[i]
			}
			equal++
		}
	}
	return int64(equal) * files.MaxHash, nil
}
