package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// target is what a blow strikes.
type target string

// The targets. Where no worker runs that could be struck, the stack is.
const (
	// killStack: SIGKILL.
	killStack target = "stack"
	// killStart: SIGKILL of a stack that is still starting.
	killStart target = "starting stack"
	// killWorker and killSupervisor: SIGKILL of one of a machine's two processes.
	killWorker     target = "worker"
	killSupervisor target = "supervisor"
	// killMachine: SIGKILL of both.
	killMachine target = "machine"
	// freezeWorker: SIGSTOP, and SIGCONT later: before it is declared dead, or
	// after.
	freezeWorker target = "frozen worker"
	// cloneWorker: one more process of a worker that runs, with all it was given.
	cloneWorker target = "cloned worker"
	// cancelRun: a client cancels what a worker is at.
	cancelRun target = "cancel"
	// killBoth and killAll: the stack with one of them, at the same moment.
	killBoth target = "stack and worker"
	killAll  target = "stack and supervisor"
	// stopStack is Ctrl-C; breakStop is SIGKILL in the middle of it.
	stopStack target = "stop"
	breakStop target = "broken stop"
)

// blow is one strike: what, and how long after the one before, or after the
// stack's start where that is later.
type injection struct {
	target target
	after  time.Duration
	// within is the time from SIGTERM to SIGKILL of a broken stop; first says
	// whether the stack dies before the machine's process.
	within time.Duration
	first  bool
	// frozen is how long a worker stands still.
	frozen time.Duration
	// down is how long the stack stays away.
	down time.Duration
}

// The longest times of a plan.
const (
	longestPause = 700 * time.Millisecond
	longestStart = 250 * time.Millisecond
	longestDown  = 150 * time.Millisecond
	longestStop  = 120 * time.Millisecond
	// longestFreeze is twice the heartbeat limit.
	longestFreeze = 2 * heartbeatTimeout
)

// plan draws n blows.
func plan(random *rand.Rand, n int) []injection {
	weights := []struct {
		target target
		weight int
	}{
		{killStack, 15},
		{killStart, 10},
		{killWorker, 12},
		{killSupervisor, 6},
		{killMachine, 6},
		{freezeWorker, 10},
		{cloneWorker, 10},
		{cancelRun, 8},
		{killBoth, 6},
		{killAll, 4},
		{stopStack, 8},
		{breakStop, 5},
	}
	span := func(most time.Duration) time.Duration { return time.Duration(random.Int64N(int64(most))) }
	injections := make([]injection, n)
	for i := range injections {
		roll := random.IntN(100)
		for _, w := range weights {
			if roll -= w.weight; roll < 0 {
				injections[i].target = w.target
				break
			}
		}
		if injections[i].target == killStart && i > 0 && !injections[i-1].target.downs() {
			injections[i].target = killStack // there is no start to be struck
		}
		injections[i].after = span(longestPause)
		if injections[i].target == killStart {
			injections[i].after = span(longestStart)
		}
		injections[i].frozen = span(longestFreeze)
		injections[i].within, injections[i].down, injections[i].first = span(longestStop), span(longestDown), random.IntN(2) == 0
	}
	return injections
}

// downs says whether the stack is gone after the blow.
func (t target) downs() bool {
	return !t.strikesMachine() && t != cancelRun || t == killBoth || t == killAll
}

// strikesMachine says whether the blow may cost a machine.
func (t target) strikesMachine() bool {
	switch t {
	case killWorker, killSupervisor, killMachine, freezeWorker, cloneWorker, killBoth, killAll:
		return true
	}
	return false
}

func (b injection) String() string {
	return fmt.Sprintf("%s after %s, down for %s", b.target, b.after.Round(time.Millisecond), b.down.Round(time.Millisecond))
}
