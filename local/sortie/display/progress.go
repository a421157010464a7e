package display

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/contract"
)

// Clock times the redrawing.
type Clock interface {
	Now() time.Time
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// frame is the pause between two drawings of the live line.
const frame = 100 * time.Millisecond

// Progress shows a run through its states, and then its download. It is safe
// for use by many goroutines.
type Progress struct {
	screen *Screen
	clock  Clock

	mu      sync.Mutex
	first   time.Time
	current *contract.TaskEvent
	since   time.Time // by our clock
	status  contract.Status
	moved   string
	trouble string
	turn    int

	stop   chan struct{}
	ended  sync.WaitGroup
	closed sync.Once
}

// NewProgress begins to show a run; Close ends it.
func NewProgress(screen *Screen, clock Clock) *Progress {
	p := &Progress{screen: screen, clock: clock, stop: make(chan struct{})}
	if screen.Draws() {
		p.ended.Go(p.animate)
	}
	return p
}

// Close removes what is drawn. What was told stays.
func (p *Progress) Close() {
	p.closed.Do(func() {
		close(p.stop)
		p.ended.Wait()
		p.screen.Draw("")
	})
}

// Told shows the newest answer about the run.
func (p *Progress) Told(status contract.Status, events []contract.TaskEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.trouble = status, ""
	for _, e := range events {
		if p.first.IsZero() {
			p.first = e.OccurredAt
		}
		if e.From == e.State && !notable(e) {
			continue
		}
		p.screen.Line(strings.TrimRight(fmt.Sprintf("  %9s  %-17s  %s", "+"+Duration(e.OccurredAt.Sub(p.first)), e.State, words(e)), " "))
		if e.From != e.State {
			p.current, p.since = &e, p.clock.Now()
		}
	}
	p.draw()
}

// Downloading shows how many bytes of total (-1: unknown) are there.
func (p *Progress) Downloading(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trouble = ""
	p.moved = fmt.Sprintf("downloading  %s", Bytes(done))
	if total > 0 {
		p.moved = fmt.Sprintf("downloading  %s of %s  %d %%", Bytes(done), Bytes(total), done*100/total)
	}
}

// Trouble shows a failure that passes.
func (p *Progress) Trouble(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trouble == "" {
		p.screen.Line(fmt.Sprintf("  %v; trying again", err))
	}
	p.trouble = err.Error()
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
	case p.trouble != "":
		p.screen.Draw(spinner + " " + p.trouble)
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
		parts = append(parts, fmt.Sprintf("%s before it in line", Count(int64(*at))))
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

// notable says whether an event that leaves the state as it is deserves a line:
// it explains why a run waits or begins again.
func notable(e contract.TaskEvent) bool {
	switch e.Type {
	case "job.queued", "job.start_refused", "job.cancel_requested", "job.execution_restarted":
		return true
	}
	return false
}

// words says what the state leaves open.
func words(e contract.TaskEvent) string {
	text := e.Message
	if e.Fault != nil {
		text = fmt.Sprintf("%s: %s", e.Fault.Code, e.Fault.Message)
	}
	if e.Attempt > 1 && e.From != e.State {
		text = strings.TrimSpace(fmt.Sprintf("attempt %d  %s", e.Attempt, text))
	}
	if text == "" && e.From == e.State {
		text = strings.ReplaceAll(strings.TrimPrefix(e.Type, "job."), "_", " ")
	}
	return text
}
