package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// target is the target of a fault.
type target string

// The targets. A fault for a worker waits until a worker runs.
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
	// freezeWorker: SIGSTOP, and SIGCONT before or after the heartbeat limit.
	freezeWorker target = "frozen worker"
	// cloneWorker: a second process of a running worker, with its environment.
	cloneWorker target = "cloned worker"
	// cancelRun: a client cancels the run of a running worker.
	cancelRun target = "cancel"
	// killBoth and killAll: SIGKILL of the stack and of one of the processes at the same time.
	killBoth target = "stack and worker"
	killAll  target = "stack and supervisor"
	// stopStack: SIGTERM. breakStop: SIGTERM, and SIGKILL during the stop.
	stopStack target = "stop"
	breakStop target = "interrupted stop"
)

// injection is one fault. after counts from the previous injection, or from a later start of
// the stack.
type injection struct {
	target target
	after  time.Duration
	// within is the time from SIGTERM to SIGKILL of an interrupted stop. first means that the
	// stack is killed before the machine's process.
	within time.Duration
	first  bool
	// frozen is the time from SIGSTOP to SIGCONT.
	frozen time.Duration
	// down is the time until the stack is restarted.
	down time.Duration
}

// Upper limits of the times in a plan.
const (
	longestPause = 700 * time.Millisecond
	longestStart = 250 * time.Millisecond
	longestDown  = 150 * time.Millisecond
	longestStop  = 120 * time.Millisecond
	// longestFreeze is twice the heartbeat limit.
	longestFreeze = 2 * heartbeatTimeout
)

// plan draws n injections.
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
		draw := random.IntN(100)
		for _, w := range weights {
			if draw -= w.weight; draw < 0 {
				injections[i].target = w.target
				break
			}
		}
		if injections[i].target == killStart && i > 0 && !injections[i-1].target.stopsStack() {
			injections[i].target = killStack // the stack is already running
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

// stopsStack reports whether the fault stops the stack.
func (t target) stopsStack() bool {
	return !t.affectsMachine() && t != cancelRun || t == killBoth || t == killAll
}

// affectsMachine reports whether the fault may end a machine.
func (t target) affectsMachine() bool {
	switch t {
	case killWorker, killSupervisor, killMachine, freezeWorker, cloneWorker, killBoth, killAll:
		return true
	}
	return false
}

func (b injection) String() string {
	return fmt.Sprintf("%s after %s, down for %s", b.target, b.after.Round(time.Millisecond), b.down.Round(time.Millisecond))
}
