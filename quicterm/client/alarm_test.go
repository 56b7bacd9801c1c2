package client

import (
	"testing"
	"testing/synctest"
	"time"
)

// An alarmStory is an alarm with a roamer that counts how often it is woken, in a bubble.
type alarmStory struct {
	t *testing.T
	alarm
}

func inAlarmStory(t *testing.T, f func(s *alarmStory)) {
	synctest.Test(t, func(t *testing.T) {
		s := &alarmStory{t, alarm{roamer: make(chan struct{}, 1)}}
		s.set(true, 250*time.Millisecond)
		s.reported = time.Now()
		f(s)
		s.stop()
	})
}

// type_ is a key that is sent now, and ack the frames that acknowledge it.
func (s *alarmStory) type_() { s.frames(time.Now(), time.Now(), true) }
func (s *alarmStory) ack()   { s.frames(time.Now(), time.Time{}, true) }

func (s *alarmStory) wantWoken(why string, want bool) {
	s.t.Helper()
	synctest.Wait()
	woken := false
	select {
	case <-s.roamer:
		woken = true
	default:
	}
	if woken != want {
		s.t.Errorf("%s: roamer woken is %v, want %v", why, woken, want)
	}
}

func TestAlarmStaysSilentForAcknowledgedKeys(t *testing.T) {
	inAlarmStory(t, func(s *alarmStory) {
		for range 40 { // for less than trafficSilence
			s.type_()
			time.Sleep(100 * time.Millisecond)
			s.ack()
			time.Sleep(100 * time.Millisecond)
			s.wantWoken("every key was acknowledged", false)
		}
	})
}

func TestAlarmWhenAckIsOverdue(t *testing.T) {
	inAlarmStory(t, func(s *alarmStory) {
		s.type_()
		time.Sleep(200 * time.Millisecond)
		s.frames(time.Now(), time.Now().Add(-200*time.Millisecond), true) // another key, no ack
		time.Sleep(50*time.Millisecond - time.Nanosecond)
		s.wantWoken("the ack is not overdue", false)
		time.Sleep(time.Nanosecond)
		s.wantWoken("the ack of the first key is overdue", true)
		s.look(time.Now(), true)
		time.Sleep(time.Second)
		s.wantWoken("the roamer watches that itself", false)
		s.ack()
		s.type_()
		time.Sleep(250 * time.Millisecond)
		s.wantWoken("a key after that is watched again", true)
	})
}

func TestAlarmWhenTrafficResumes(t *testing.T) {
	inAlarmStory(t, func(s *alarmStory) {
		time.Sleep(time.Hour)
		s.ack()
		s.wantWoken("output after an hour", true)
		if traffic := s.look(time.Now(), false); !traffic.Equal(time.Now()) {
			t.Errorf("traffic at %v, want it now", traffic)
		}
		time.Sleep(time.Second)
		s.ack()
		s.wantWoken("output that follows", false)
	})
}

func TestAlarmWhileNotSteady(t *testing.T) {
	inAlarmStory(t, func(s *alarmStory) {
		s.set(false, 0)
		s.wantWoken("frames may have come since the roamer looked", true)
		s.frames(time.Now(), time.Time{}, false)
		s.wantWoken("every frame may be news", true)
	})
}
