package files

import (
	"io/fs"
	"time"
)

// Types of packets of SFTP for directories.
const (
	TypeClose   = 4
	TypeOpenDir = 11
	TypeReadDir = 12
	TypeHandle  = 102
	TypeNames   = 104
)

// StatusEOF is the code of the error behind the last names of a directory.
const StatusEOF = 1

// Which attributes a file has in a packet.
const (
	hasSize     = 1 << 0
	hasOwner    = 1 << 1
	hasMode     = 1 << 2
	hasTimes    = 1 << 3
	hasExtended = 1 << 31
)

// OnHandle returns a request about what OpenDir has opened.
func OnHandle(kind byte, id uint32, handle string) []byte {
	return AppendString(Packet(kind, id), handle)
}

// ParseHandle returns the handle of an answer from the bytes behind the type and the id.
func ParseHandle(body []byte) (string, error) {
	f := fields{b: body}
	handle := f.string()
	if f.bad {
		return "", errMalformed
	}
	return handle, nil
}

// An info describes a file as a server does.
type info struct {
	name    string
	size    uint64
	mode    fs.FileMode
	modTime time.Time
}

func (i *info) Name() string       { return i.name }
func (i *info) Size() int64        { return int64(i.size) }
func (i *info) Mode() fs.FileMode  { return i.mode }
func (i *info) ModTime() time.Time { return i.modTime }
func (i *info) IsDir() bool        { return i.mode.IsDir() }
func (i *info) Sys() any           { return nil }

// ParseNames returns the files of a Names packet from the bytes behind the type and the id, with the names that the server
// has chosen, except . and ..
func ParseNames(body []byte) (infos []fs.FileInfo, err error) {
	f := fields{b: body}
	for n := f.uint32(); n > 0 && !f.bad; n-- {
		i := &info{name: f.string()}
		f.string() // as ls prints it
		flags := f.uint32()
		if flags&hasSize != 0 {
			i.size = f.uint64()
		}
		if flags&hasOwner != 0 {
			f.uint64()
		}
		if flags&hasMode != 0 {
			i.mode = modeOf(f.uint32())
		}
		if flags&hasTimes != 0 {
			f.uint32()
			i.modTime = time.Unix(int64(f.uint32()), 0)
		}
		if flags&hasExtended != 0 {
			for pairs := f.uint32(); pairs > 0 && !f.bad; pairs-- {
				f.string()
				f.string()
			}
		}
		if i.size > 1<<63-1 {
			f.bad = true
		}
		if i.name != "." && i.name != ".." {
			infos = append(infos, i)
		}
	}
	if f.bad {
		return nil, errMalformed
	}
	return infos, nil
}

// modeOf returns the mode of a file from st_mode.
func modeOf(mode uint32) fs.FileMode {
	kinds := map[uint32]fs.FileMode{
		0o100000: 0, 0o040000: fs.ModeDir, 0o120000: fs.ModeSymlink, 0o010000: fs.ModeNamedPipe,
		0o140000: fs.ModeSocket, 0o060000: fs.ModeDevice, 0o020000: fs.ModeDevice | fs.ModeCharDevice,
	}
	kind, ok := kinds[mode&0o170000]
	if !ok {
		kind = fs.ModeIrregular
	}
	return kind | fs.FileMode(mode)&fs.ModePerm
}
