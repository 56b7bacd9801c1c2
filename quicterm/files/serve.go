// Package files serves the files of an account over a pipe, and has what its clients share with it. The protocol is
// SFTP 3 (draft-ietf-secsh-filexfer-02), with requests that read and write a small file at once, and one that hashes a
// range of a file. It knows no session and no login; whoever runs it has decided what may be served.
package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/pkg/sftp"
)

const (
	// maxRequests bounds the requests of this package that are served at once, each with a packet in memory.
	maxRequests = 16

	// maxRead bounds the bytes that one read returns: what a packet has room for.
	maxRead = MaxPacket - 1<<10
)

// A server serves the requests that pkg/sftp does not know.
type server struct {
	out      *Writer
	readOnly bool
	places   chan struct{}
	work     sync.WaitGroup
}

// Serve serves the files of the process's account until the input ends. Relative paths start at the directory of the
// process.
func Serve(in io.Reader, out io.WriteCloser, readOnly bool) error {
	s := &server{out: NewWriter(out), readOnly: readOnly, places: make(chan struct{}, maxRequests)}
	defer s.work.Wait()
	requests := NewReader(in, func(kind byte, _ uint32) bool { return kind == TypeExtended }, s.take)
	options := []sftp.ServerOption{sftp.WithMaxTxPacket(maxRead), sftp.WithAllocator()}
	if readOnly {
		options = append(options, sftp.ReadOnly())
	}
	known, err := sftp.NewServer(struct {
		io.Reader
		io.Writer
		io.Closer
	}{requests, s.out, out}, options...)
	if err != nil {
		return err
	}
	return known.Serve()
}

// take starts to serve a request of this package.
func (s *server) take(packet []byte) bool {
	f := fields{b: packet[1:]}
	id, name := f.uint32(), f.string()
	var serve func(*fields) ([]byte, error)
	switch name {
	case PutRequest:
		serve = s.put
	case GetRequest:
		serve = get
	case HashRequest:
		serve = hash
	case HomeRequest:
		serve = home
	default:
		return false
	}
	s.places <- struct{}{}
	s.work.Go(func() {
		defer func() { <-s.places }()
		reply, err := serve(&f)
		answer := append(Packet(TypeReply, id), reply...)
		if reply == nil || err != nil {
			answer = status(id, err)
		}
		s.out.Send(answer) // if the pipe has ended, the input ends, too
	})
	return true
}

// status returns a Status packet.
func status(id uint32, err error) []byte {
	code, text := uint32(statusOK), ""
	if err != nil {
		code, text = statusFailure, Reason(err)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = statusNoFile
	case errors.Is(err, fs.ErrPermission):
		code = statusPermission
	}
	packet := binary.BigEndian.AppendUint32(Packet(TypeStatus, id), code)
	return AppendString(AppendString(packet, text), "")
}

// Reason returns an error without the paths that package os names: those who show it name the file.
func Reason(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	}
	return err.Error()
}

// An Attributes says what a new file gets beside its content.
type Attributes struct {
	Mode    fs.FileMode // its permissions
	Exact   bool        // whatever the umask says
	ModTime time.Time   // zero for now
}

// The flags of a PutRequest.
const (
	exactMode = 1 << 0
	givenTime = 1 << 1
)

// Put returns a PutRequest.
func Put(id uint32, name string, a Attributes, content []byte) []byte {
	b := AppendString(Packet(TypeExtended, id), PutRequest)
	b = binary.BigEndian.AppendUint32(AppendString(b, name), uint32(a.Mode.Perm()))
	var flags uint32
	if a.Exact {
		flags |= exactMode
	}
	var at uint64
	if !a.ModTime.IsZero() {
		flags |= givenTime
		at = uint64(a.ModTime.UnixNano())
	}
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, flags), at)
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	return append(b, content...)
}

func (s *server) put(f *fields) ([]byte, error) {
	name := f.string()
	a := Attributes{Mode: fs.FileMode(f.uint32()).Perm()}
	flags, at := f.uint32(), int64(f.uint64())
	a.Exact = flags&exactMode != 0
	if flags&givenTime != 0 {
		a.ModTime = time.Unix(0, at)
	}
	content := f.bytes(f.uint32())
	switch {
	case f.bad || name == "":
		return nil, errMalformed
	case s.readOnly:
		return nil, fs.ErrPermission
	}
	name = filepath.Clean(name)
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return nil, PutIn(root, filepath.Base(name), a, content)
}

// PutIn writes a file that is there with all of its content, or not at all. Its zeros are holes. It follows no link at the
// file's name.
func PutIn(root *os.Root, name string, a Attributes, content []byte) (err error) {
	part := PartOf(name)
	create := func() (*os.File, error) { return root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, a.Mode) }
	file, err := create()
	if errors.Is(err, fs.ErrExist) { // of a client that has ended
		root.Remove(part)
		file, err = create()
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			root.Remove(part)
		}
	}()
	end := 0
	for at, piece := range Data(content) {
		if err == nil {
			_, err = file.WriteAt(piece, at)
		}
		end = int(at) + len(piece)
	}
	if err == nil && end < len(content) { // zeros
		err = file.Truncate(int64(len(content)))
	}
	if err == nil && a.Exact {
		err = file.Chmod(a.Mode)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil && !a.ModTime.IsZero() {
		err = root.Chtimes(part, a.ModTime, a.ModTime)
	}
	if err == nil {
		err = root.Rename(part, name)
	}
	return err
}

// HashOf returns a HashRequest for size bytes, at most MaxHash, of a file.
func HashOf(id uint32, name string, offset, size uint64) []byte {
	b := AppendString(AppendString(Packet(TypeExtended, id), HashRequest), name)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, offset), size)
}

func hash(f *fields) ([]byte, error) {
	name, offset, size := f.string(), f.uint64(), f.uint64()
	if f.bad || size > MaxHash || int64(offset) < 0 {
		return nil, errMalformed
	}
	file, _, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	h, err := HashRange(file, offset, size)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint64(nil, h.Size), h.Sum[:]...), nil
}

// HashRange hashes the bytes of a file from an offset on.
func HashRange(file io.ReaderAt, offset, size uint64) (h Hash, err error) {
	sum := sha256.New()
	n, err := io.Copy(sum, io.NewSectionReader(file, int64(offset), int64(size)))
	h.Size = uint64(n)
	sum.Sum(h.Sum[:0])
	return h, err
}

// HomeOf returns a HomeRequest.
func HomeOf(id uint32) []byte { return AppendString(Packet(TypeExtended, id), HomeRequest) }

func home(*fields) ([]byte, error) {
	dir, err := os.UserHomeDir()
	return []byte(dir), err
}

// GetOf returns a GetRequest.
func GetOf(id uint32, name string) []byte {
	return AppendString(AppendString(Packet(TypeExtended, id), GetRequest), name)
}

func get(f *fields) ([]byte, error) {
	name := f.string()
	if f.bad {
		return nil, errMalformed
	}
	return Get(name)
}

// Get returns the content of a file, or the first MaxPut bytes and one more of a larger one.
func Get(name string) ([]byte, error) {
	file, info, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content := make([]byte, 0, min(info.Size(), MaxPut)+bytes.MinRead)
	buf := bytes.NewBuffer(content)
	_, err = buf.ReadFrom(io.LimitReader(file, MaxPut+1))
	return buf.Bytes(), err
}

// OpenRegular opens a file to read it. It does not wait for the other end of a pipe.
func OpenRegular(name string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, nil, err
	}
	file, err := os.Open(name)
	return file, info, err
}

// partSuffix ends the names of files that are not whole. A user's own file hardly has such a name.
const partSuffix = ".qt.part"

// maxName is the length of the longest name in most file systems, in bytes.
const maxName = 255

// IsPart reports whether a file with this name is a part of another one.
func IsPart(name string) bool {
	return len(name) > len(partSuffix) && name[len(name)-len(partSuffix):] == partSuffix
}

// PartOf returns the path of a file, with slashes, while it is not whole.
func PartOf(name string) string {
	folder, base := path.Split(name)
	if len(base)+len(partSuffix) > maxName {
		sum := sha256.Sum256([]byte(base))
		base = base[:maxName-len(partSuffix)-17] + "." + hex.EncodeToString(sum[:8])
	}
	return folder + base + partSuffix
}
