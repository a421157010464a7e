package asl

import (
	"crypto/sha256"
	"slices"
	"time"
)

// Pulse is as much of an execution as a heartbeat needs: the tokens that are
// waited for, with their heartbeat clocks, and what else is due. Whoever keeps it
// hears heartbeats without having the execution at hand, which takes them over
// with Hear before anything else happens to it. It is small, because whoever has
// many executions has one of each in memory. The zero value waits for nobody.
type Pulse struct {
	clocks []clock
	rest   int64 // the first deadline that no heartbeat moves; 0: there is none
}

// clock is the heartbeat clock of a token.
type clock struct {
	token     digest
	heartbeat int64 // as an attempt's
	lateAt    int64
}

// digest tells one token from another in less space than the token's.
type digest [16]byte

func digestOf(token string) digest {
	sum := sha256.Sum256([]byte(token))
	return digest(sum[:])
}

// Pulse is that of the execution as it is now.
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

// Heartbeat starts the heartbeat clock of the token's state anew, unless that
// would make it run out sooner. False as for Execution.Succeed.
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

// Deadline is the execution's, once it has heard what the pulse has.
func (p *Pulse) Deadline() (time.Time, bool) {
	at := p.rest
	for _, c := range p.clocks {
		if c.lateAt != 0 {
			at = min(at, c.lateAt)
		}
	}
	return time.UnixMilli(at).UTC(), at != 0
}

// Hear takes over the heartbeats that the pulse has heard. Of tokens that are no
// longer waited for it takes nothing.
func (e *Execution) Hear(p Pulse) {
	for _, c := range p.clocks {
		heard := func(a *attempt) bool { return a.awaits() && digestOf(a.token) == c.token }
		if f := e.waitingFor(heard); f != nil {
			f.attempt.lateAt = max(f.attempt.lateAt, c.lateAt)
		}
	}
}

// Refresh starts the heartbeat clocks anew that were started before the time: for
// whoever cannot know which heartbeats were heard until then.
func (e *Execution) Refresh(at time.Time) {
	e.visit(func(f *frame) {
		if f.waiting == waitTask && f.attempt.lateAt != 0 {
			f.attempt.lateAt = max(f.attempt.lateAt, at.UnixMilli()+f.attempt.heartbeat)
		}
	})
}
