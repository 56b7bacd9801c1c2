package monitor

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/quicterm/quicterm/migrate/carrier"
	"github.com/quicterm/quicterm/migrate/carrier/unixsock"
)

// answer does what the network half asks. What it sends is taken for hostile.
func (s *Monitor) answer(ctx context.Context, k kind, payload []byte) (answer any, send []int, err error) {
	err = s.contain(s.log, func() (err error) {
		answer, send, err = s.dispatch(ctx, k, payload)
		return err
	})
	return answer, send, err
}

func (s *Monitor) dispatch(ctx context.Context, k kind, payload []byte) (answer any, send []int, err error) {
	switch k {
	case kindSetup:
		setup := s.Setup()
		setup.Apart = true
		return setup, nil, nil
	case kindMeasure:
		return answered(s.Measure(ctx))
	case kindLeave:
		var id LoginID
		err := decode(payload, &id)
		if err == nil {
			s.Leave(id)
		}
		return nil, nil, err
	case kindSign:
		return serve(ctx, payload, func(ctx context.Context, r *Sign) (*[]byte, error) {
			signature, err := s.Sign(ctx, r)
			return &signature, err
		})
	case kindOffer:
		return serve(ctx, payload, s.Offer)
	case kindProve:
		return serve(ctx, payload, s.Prove)
	case kindRedeem:
		return serve(ctx, payload, s.Redeem)
	case kindCheck:
		return serve(ctx, payload, func(ctx context.Context, r *By) (*struct{}, error) { return new(struct{}), s.Check(ctx, r) })
	case kindList:
		return serve(ctx, payload, s.List)
	case kindDescribe:
		return serve(ctx, payload, s.Describe)
	case kindPass:
		return serve(ctx, payload, s.Pass)
	case kindRevoke:
		return serve(ctx, payload, s.Revoke)
	case kindAttach:
		var r Attach
		if err := decode(payload, &r); err != nil {
			return nil, nil, err
		}
		a, err := s.Attach(ctx, &r)
		if err != nil {
			return nil, nil, err
		}
		send, err := s.handOver(a.Carrier, r.By.Login)
		return a, send, err
	case kindResume:
		var r Resume
		if err := decode(payload, &r); err != nil {
			return nil, nil, err
		}
		a, err := s.Resume(ctx, &r)
		if err != nil || a.Carrier == nil {
			return a, nil, err
		}
		send, err := s.handOver(a.Carrier, a.Login.ID)
		return a, send, err
	}
	return nil, nil, fmt.Errorf("call %d is not known", k)
}

// serve decodes a request, and answers it.
func serve[R, A any](ctx context.Context, payload []byte, f func(context.Context, *R) (*A, error)) (any, []int, error) {
	r := new(R)
	if err := decode(payload, r); err != nil {
		return nil, nil, err
	}
	return answered(f(ctx, r))
}

func answered[A any](a *A, err error) (any, []int, error) {
	if err != nil {
		return nil, nil, err
	}
	return a, nil, nil
}

// handOver returns the descriptors of a carrier to a holder, and closes the carrier: the other process
// has it then. The request of the client was sent and answered on it, so the holder takes nothing
// from it any more but the frames of this client. The login, if there is one, gets a leash on it.
func (s *Monitor) handOver(c carrier.Carrier, login LoginID) (fds []int, err error) {
	defer c.Close()
	defer func() {
		if err != nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
			fds = nil
		}
	}()
	u, ok := c.(*unixsock.Conn)
	if !ok {
		return nil, errors.New("a carrier that is no socket cannot be handed over")
	}
	for _, socket := range u.Sockets() {
		fd, err := descriptorOf(socket)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	if login == (LoginID{}) {
		return fds, nil
	}
	held, err := unix.FcntlInt(uintptr(fds[0]), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fds, err
	}
	return fds, s.logins.hold(login, leash(held))
}
