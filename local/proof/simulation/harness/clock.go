package harness

import (
	"time"

	"github.com/sortie-dev/sortie/local/twin/virtual"
)

// timeline is the virtual clock of a world. Its tasks make calls of Sortie.
type timeline = virtual.Timeline[*invocation]

// Signal is a condition for which tasks can wait.
type Signal = virtual.Signal

// HostClock is the clock of the host that runs the current call. It differs from the timeline
// by the host's offset.
type HostClock struct{ W *Base }

// Now implements clock.Clock.
func (c HostClock) Now() time.Time { return c.W.Time.Now.Add(c.W.offset()) }

// NewTimer implements clock.Clock. It returns a timer that has fired: the time
// passes during the call.
func (c HostClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	c.W.Time.Sleep(d)
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return fired, func() {}
}

// serverClock is the clock of the HTTP server. Its only timer limits the time for reading a
// body, and bodies are in memory, so it never fires.
type serverClock struct{ HostClock }

// NewTimer implements clock.Clock.
func (serverClock) NewTimer(time.Duration) (<-chan time.Time, func()) {
	return nil, func() {}
}
