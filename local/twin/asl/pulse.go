package asl

import (
	"crypto/sha256"
	"slices"
	"time"
)

// Pulse has the tokens that an execution waits for, their heartbeat deadlines, and the
// execution's other deadline. It is small, so that a caller can keep the pulses of many
// executions in memory and accept heartbeats without loading the executions. The caller must
// call ApplyHeartbeats before any other change of the execution. The zero value has no tokens.
type Pulse struct {
	clocks []clock
	rest   int64 // the first deadline that heartbeats do not extend; 0: none
}

// clock is the heartbeat deadline of a token.
type clock struct {
	token     digest
	heartbeat int64 // as an attempt's
	lateAt    int64
}

// digest is a short form of a token.
type digest [16]byte

func digestOf(token string) digest {
	sum := sha256.Sum256([]byte(token))
	return digest(sum[:])
}

// Pulse returns the pulse of the execution's current state.
func (e *Execution) Pulse() Pulse {
	var p Pulse
	e.deadlines(func(due int64, f *frame) {
		if f != nil && f.waiting == waitTask {
			due = f.attempt.timeoutAt
			if f.attempt.awaits() {
				p.clocks = append(p.clocks, clock{digestOf(f.attempt.token), f.attempt.heartbeat, f.attempt.lateAt})
			}
		}
		if p.rest == 0 || due < p.rest {
			p.rest = due
		}
	})
	p.clocks = slices.Clip(p.clocks)
	return p
}

// Heartbeat restarts the heartbeat clock of the token's state, unless that would make the
// deadline earlier. It returns false in the same cases as Execution.Succeed.
func (p *Pulse) Heartbeat(now time.Time, token string) bool {
	named := digestOf(token)
	for i := range p.clocks {
		if c := &p.clocks[i]; c.token == named {
			if c.heartbeat > 0 {
				c.lateAt = max(c.lateAt, now.UnixMilli()+c.heartbeat)
			}
			return true
		}
	}
	return false
}

// Deadline returns the execution's deadline after ApplyHeartbeats.
func (p *Pulse) Deadline() (time.Time, bool) {
	at := p.rest
	for _, c := range p.clocks {
		if c.lateAt != 0 {
			at = min(at, c.lateAt)
		}
	}
	return time.UnixMilli(at).UTC(), at != 0
}

// ApplyHeartbeats copies the heartbeats that the pulse has accepted, except for tokens for
// which the execution no longer waits.
func (e *Execution) ApplyHeartbeats(p Pulse) {
	for _, c := range p.clocks {
		matches := func(a *attempt) bool { return a.awaits() && digestOf(a.token) == c.token }
		if f := e.waitingFor(matches); f != nil {
			f.attempt.lateAt = max(f.attempt.lateAt, c.lateAt)
		}
	}
}

// RestartHeartbeats restarts the heartbeat clocks that were started before at. It is for
// callers that do not know which heartbeats arrived before at.
func (e *Execution) RestartHeartbeats(at time.Time) {
	e.visit(func(f *frame) {
		if f.waiting == waitTask && f.attempt.lateAt != 0 {
			f.attempt.lateAt = max(f.attempt.lateAt, at.UnixMilli()+f.attempt.heartbeat)
		}
	})
}
