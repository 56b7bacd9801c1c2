//go:build linux || darwin

package holder

import (
	"time"

	"github.com/quicterm/quicterm/quicterm/holder/sizing"
	"github.com/quicterm/quicterm/quicterm/holder/socket"
	"github.com/quicterm/quicterm/quicterm/holder/spawn"
)

// All times of this package follow. Five are chosen: what a program takes to act on a key (turn), what a person does not
// notice (blink), how long a process of this machine may take to answer (socket.AnswerTime), how long a program
// may take to end (spawn.KillGrace), and how often what hardly ever happens is looked for (sweepInterval).
const (
	// turn is how long a program may turn the echo off after it has asked for a password.
	turn = 5 * time.Millisecond

	// silentTime is how long the terminal must be silent before its modes are looked up. A program may start slowly
	// too: except after plain keys, they are looked up again after four times as long, up to maxSilentTime.
	silentTime    = turn
	maxSilentTime = 256 * turn

	// skipGrace is how long a program may act on the input before a Skip. What it prints meanwhile is read and
	// skipped, to get to the prompt.
	skipGrace = 2 * turn

	// drainPoll is how often the kernel is asked for output after the program's end.
	drainPoll = 2 * turn

	// effectTime is how long a program has for the effect of input. A hint does not count input that is younger.
	// changeTime takes its place for settledAfter after a change of the modes: a program that starts does not read yet.
	effectTime   = 6 * turn
	changeTime   = 10 * turn
	settledAfter = 10 * blink

	// progressInterval is how often is looked what the program does with its input, for a client that is a program, and
	// minProgress how soon after something was typed.
	progressInterval = 3 * turn
	minProgress      = turn / 5

	blink = 100 * time.Millisecond

	// echoTime is how long after input output counts as the answer to it.
	echoTime = blink

	// quietTime is how long a terminal must be silent after its program's end, if other processes keep it open: for
	// what they print about the end. maxDrain is how long it is read for that silence, not counting the time that
	// output waits for a client.
	quietTime = blink
	maxDrain  = exitGrace

	// parkTime bounds how long drawing waits for the carriers that send a snapshot: in a flood there is always more
	// to draw.
	parkTime = blink

	// restTime is how long a client that only watches and is behind is sent nothing: in a flood it gets a snapshot
	// that often, and the processor is the program's.
	restTime = 3 * blink

	// drawDelay is how much later than it is sent output is drawn, unless a client waits for the screen: the echo of
	// a key has left by then, and much of a flood has come.
	drawDelay = 5 * blink / 2

	// titleInterval is how often another title is told at most.
	titleInterval = 20 * blink

	// portsInterval is the time between two looks for ports at which processes listen, and portsDelay that from output to
	// a look: a server prints that it is ready, and a shell its prompt behind it.
	portsInterval = titleInterval
	portsDelay    = drawDelay

	// drawnTime bounds how long an attach waits until the output is drawn.
	drawnTime = 10 * blink

	// exitGrace is how long clients have to read the program's end after one of them has done so.
	exitGrace = 20 * blink

	// requestTime is how long a daemon may take to send its request.
	requestTime = 2 * socket.AnswerTime

	// loginTime is how much of spawn.Time PAM and the process in its session may take, and 2 seconds more after a late
	// answer of PAM.
	loginTime = 3 * socket.AnswerTime

	// callTime is how long a program waits, or has rung or ended, before a person is told who does not look: others may
	// answer, and a client has the output by then. attendedTime is how long after a key a person is taken to look.
	callTime     = 50 * blink
	attendedTime = 2 * callTime

	// displacedGrace is how long a displaced client has to read that it is, before its carriers are closed.
	displacedGrace = socket.AnswerTime

	// awayGrace is how long a client may have no carrier before the writers are told that it has left, and another
	// one may have its place: a move to another network takes less.
	awayGrace = 2 * socket.AnswerTime

	// stallLimit is how long a program on a terminal waits for a client that owes an ack: after that the client
	// counts as away.
	stallLimit = awayGrace + sizing.Grace

	// killWait is how long a Kill waits for the program's end, within socket.AnswerTime.
	killWait = spawn.KillGrace + 10*blink

	// sweepInterval is how often the socket's name is checked. acceptPause is the time between two attempts to accept
	// after one failed.
	sweepInterval = time.Minute
	acceptPause   = time.Second

	// followerGrace is how long an ended session is kept for a client that gets its events and is away: for an outage. So
	// is agentGrace, for which a client that is away keeps the agent.
	followerGrace = sweepInterval
	agentGrace    = sweepInterval

	// missedTime is how long a client must be away to be told of what has ended meanwhile: a person looks away after that.
	missedTime = sweepInterval

	// recorderGrace is how long output is kept for a client that records and is away, and an ended session for one
	// that has not got the rest.
	recorderGrace = 60 * sweepInterval

	// hiddenTTL is how long a killed session is kept to tell a client that is away why it ended. Nobody sees that it is,
	// and each is a process: who kills many must not have that many for a day.
	hiddenTTL = recorderGrace
)

// afterLocked calls f, with the gate locked, when d has passed, unless the session is
// over by then.
func (h *Holder) afterLocked(d time.Duration, f func()) {
	if h.life.over {
		return
	}
	h.running.Go(func() {
		select {
		case <-h.end:
			return
		case <-time.After(d):
		}
		h.gate.Lock()
		defer h.gate.Unlock()
		if !h.life.over {
			f()
		}
	})
}

// wake wakes the loop that waits for a channel, which buffers one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
