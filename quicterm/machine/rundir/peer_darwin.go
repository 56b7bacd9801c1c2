package rundir

import "golang.org/x/sys/unix"

func peerUID(socket int) (uint32, error) {
	cred, err := unix.GetsockoptXucred(socket, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

func peerPID(socket int) (int, error) {
	return unix.GetsockoptInt(socket, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
}
