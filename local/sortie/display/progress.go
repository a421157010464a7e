package display

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// frame is the interval at which the live line is redrawn.
const frame = 100 * time.Millisecond

// Progress displays the states of a run, and then its download. It is safe for concurrent use.
type Progress struct {
	screen *Screen
	clock  clock.Clock

	mu      sync.Mutex
	first   time.Time
	current *contract.TaskEvent
	since   time.Time // by the local clock
	status  contract.Status
	moved   string
	fault   string // the fault displayed last
	failure string
	turn    int

	stop   chan struct{}
	ended  sync.WaitGroup
	closed sync.Once
}

// NewProgress starts the display of a run. The caller closes it.
func NewProgress(screen *Screen, clk clock.Clock) *Progress {
	p := &Progress{screen: screen, clock: clk, stop: make(chan struct{})}
	if screen.Draws() {
		p.ended.Go(p.animate)
	}
	return p
}

// Close removes the live line. It keeps the other lines.
func (p *Progress) Close() {
	p.closed.Do(func() {
		close(p.stop)
		p.ended.Wait()
		p.screen.Draw("")
	})
}

// Update displays a status of the run and the events since the previous one.
func (p *Progress) Update(status contract.Status, events []contract.TaskEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.failure = status, ""
	for _, e := range events {
		if p.first.IsZero() {
			p.first = e.OccurredAt
		}
		if e.From == e.State && !notable(e) {
			continue
		}
		p.screen.Line(strings.TrimRight(fmt.Sprintf("  %9s  %-17s  %s", "+"+Duration(e.OccurredAt.Sub(p.first)), e.State, p.details(e)), " "))
		if e.From != e.State {
			p.current, p.since = &e, p.clock.Now()
		}
	}
	p.draw()
}

// Downloading displays the bytes so far and in total (-1: unknown).
func (p *Progress) Downloading(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = ""
	p.moved = fmt.Sprintf("downloading  %s", Bytes(done))
	if total > 0 {
		p.moved = fmt.Sprintf("downloading  %s of %s  %d %%", Bytes(done), Bytes(total), done*100/total)
	}
}

// Retrying displays a failure that is being retried.
func (p *Progress) Retrying(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == "" {
		p.screen.Line(fmt.Sprintf("  %v; retrying", err))
	}
	p.failure = err.Error()
	p.draw()
}

func (p *Progress) animate() {
	for {
		fired, stop := p.clock.NewTimer(frame)
		select {
		case <-fired:
		case <-p.stop:
			stop()
			return
		}
		p.mu.Lock()
		p.turn++
		p.draw()
		p.mu.Unlock()
	}
}

// draw writes the live line.
func (p *Progress) draw() {
	spinner := []string{"-", "\\", "|", "/"}[p.turn%4]
	switch {
	case p.failure != "":
		p.screen.Draw(spinner + " " + p.failure)
	case p.moved != "":
		p.screen.Draw(spinner + " " + p.moved)
	case p.current != nil && p.status.Status == contract.StatusProcessing:
		p.screen.Draw(spinner + " " + p.live())
	default:
		p.screen.Draw("")
	}
}

func (p *Progress) live() string {
	parts := []string{fmt.Sprintf("%s  %s", p.current.State, Duration(p.clock.Now().Sub(p.since)))}
	if at := p.status.QueuePosition; at != nil {
		parts = append(parts, fmt.Sprintf("%s queued before it", Count(int64(*at))))
	}
	if p.current.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", p.current.Attempt))
	}
	if progress := p.status.Progress; progress != nil {
		if progress.Percent != nil {
			parts = append(parts, fmt.Sprintf("%d %%", *progress.Percent))
		}
		if progress.Message != "" {
			parts = append(parts, progress.Message)
		}
	}
	return strings.Join(parts, "  ")
}

// notable reports whether an event that keeps the state gets a line, because it explains why a
// run waits or restarts.
func notable(e contract.TaskEvent) bool {
	switch e.Type {
	case "job.queued", "job.start_refused", "job.cancel_requested", "job.execution_restarted":
		return true
	}
	return false
}

// details returns the details of an event beyond its state. It does not repeat a fault that is
// already displayed.
func (p *Progress) details(e contract.TaskEvent) string {
	text := e.Message
	if e.Fault != nil {
		fault := fmt.Sprintf("%s: %s", e.Fault.Code, e.Fault.Message)
		switch {
		case fault != p.fault:
			text = fault
		case text == e.Fault.Message:
			text = ""
		}
		p.fault = fault
	} else if e.From != e.State {
		p.fault = ""
	}
	if e.Attempt > 1 && e.From != e.State {
		text = strings.TrimSpace(fmt.Sprintf("attempt %d  %s", e.Attempt, text))
	}
	if text == "" && e.From == e.State {
		text = strings.ReplaceAll(strings.TrimPrefix(e.Type, "job."), "_", " ")
	}
	return text
}
