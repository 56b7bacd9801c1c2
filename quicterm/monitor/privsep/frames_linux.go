package privsep

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A frameReader reads frames. One goroutine uses it.
type frameReader struct {
	socket *net.UnixConn
	trusts bool
	ahead  *bufio.Reader // if no descriptors are taken, which come with certain bytes
	files  []*os.File    // that came, and whose frame is not complete
	oob    []byte
}

// close closes the descriptors that belong to no frame.
func (r *frameReader) close() { closeFiles(r.files) }

// frame returns the next frame. The caller owns the files. They are empty, and not nil, if the frame
// has some that could not be received.
func (r *frameReader) frame() (k kind, call uint64, payload []byte, files []*os.File, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, 0, nil, nil, err
	}
	length, count := binary.BigEndian.Uint32(header[:]), int(header[5])
	switch {
	case length > maxFrame:
		return 0, 0, nil, nil, errTooLong
	case header[6] != 0 || header[7] != 0 || count > maxFiles:
		return 0, 0, nil, nil, errors.New("what came is no frame")
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, 0, nil, nil, err
	}
	if !r.trusts {
		count = 0
	}
	files, r.files = r.files, nil
	if len(files) != count {
		closeFiles(files)
		files = []*os.File{} // this process had none free for them
	}
	return kind(header[4]), binary.BigEndian.Uint64(header[8:]), payload, files, nil
}

// Read reads bytes, and keeps the descriptors that come with them.
func (r *frameReader) Read(b []byte) (int, error) {
	if !r.trusts {
		return r.ahead.Read(b)
	}
	if r.oob == nil {
		r.oob = make([]byte, unix.CmsgSpace(4*maxFiles))
	}
	n, oobn, _, _, err := r.socket.ReadMsgUnix(b, r.oob)
	if oobn > 0 {
		messages, parseErr := unix.ParseSocketControlMessage(r.oob[:oobn])
		if parseErr != nil {
			return n, parseErr
		}
		for i := range messages {
			fds, _ := unix.ParseUnixRights(&messages[i])
			for _, fd := range fds {
				unix.CloseOnExec(fd)
				r.files = append(r.files, os.NewFile(uintptr(fd), "passed"))
			}
		}
	}
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}
