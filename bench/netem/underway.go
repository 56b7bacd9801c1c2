package netem

import (
	"container/heap"
	"sync"
	"time"
)

// underway holds packets in flight, and delivers each at its time.
type underway struct {
	mu    sync.Mutex
	queue deliveries
	count uint64

	// nap sleeps for less than coarse more exactly than a timer. It is nil for virtual
	// time, which has timers only.
	nap func(time.Duration)

	wake chan struct{}
	done chan struct{}
}

type delivery struct {
	at      time.Time
	order   uint64 // among those at the same time
	deliver func()
}

type deliveries []delivery

func (d deliveries) Len() int { return len(d) }
func (d deliveries) Less(i, j int) bool {
	return d[i].at.Before(d[j].at) || d[i].at.Equal(d[j].at) && d[i].order < d[j].order
}
func (d deliveries) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deliveries) Push(x any)   { *d = append(*d, x.(delivery)) }
func (d *deliveries) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

func newUnderway() *underway {
	return &underway{wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// coarse is how late a timer may fire: Go waits in whole milliseconds.
const coarse = time.Millisecond

// add calls deliver at a time.
func (u *underway) add(at time.Time, deliver func()) {
	u.mu.Lock()
	u.count++
	heap.Push(&u.queue, delivery{at, u.count, deliver})
	u.mu.Unlock()
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// deliver delivers until close is called.
func (u *underway) deliver() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := time.Hour
		var due []func()
		u.mu.Lock()
		for len(u.queue) > 0 {
			if left := time.Until(u.queue[0].at); left > 0 {
				wait = left
				break
			}
			due = append(due, heap.Pop(&u.queue).(delivery).deliver)
		}
		u.mu.Unlock()
		for _, deliver := range due {
			deliver()
		}
		if len(due) > 0 {
			continue // delivering took time
		}
		if u.nap != nil {
			if wait <= coarse {
				u.nap(wait)
				continue
			}
			wait -= coarse
		}
		timer.Reset(wait)
		select {
		case <-u.done:
			return
		case <-u.wake:
		case <-timer.C:
		}
	}
}

// close drops all packets in flight.
func (u *underway) close() { close(u.done) }
