package display

import (
	"fmt"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Status returns a table of the status of a run. of says in a few words what an ad hoc run is of.
func (z Times) Status(s contract.Status, of string) *Table {
	t := z.fields()
	row := t.row
	row("run", s.TaskID)
	row("of", of)
	row("status", s.Status)
	row("state", s.State)
	if s.Attempt > 1 {
		row("attempt", fmt.Sprint(s.Attempt))
	}
	if len(s.FellBack) > 0 {
		row("pool", s.Pool)
	}
	for _, f := range s.FellBack {
		row("fallback", z.fellBack(f))
	}
	if s.QueuePosition != nil {
		row("queued before it", Count(int64(*s.QueuePosition)))
	}
	if s.Progress != nil && !s.Skipped { // progress has the same text as the error
		name := "progress"
		if !s.CompletedAt.IsZero() {
			name = "result"
		}
		text := s.Progress.Message
		if s.Progress.Percent != nil {
			text = strings.TrimSpace(fmt.Sprintf("%d %% %s", *s.Progress.Percent, text))
		}
		row(name, text)
	}
	if s.Format != "" {
		row("export", fmt.Sprintf("%s of %s", s.Format, s.PI))
	}
	if by := s.TriggeredBy; by != nil {
		row("triggered by", relative(*by))
	}
	for _, child := range s.Triggered {
		row("triggered", relative(child))
	}
	for _, a := range s.UntakenActions {
		row(a.Action, fmt.Sprintf("%s not taken, tries: %d, last at %s: %s; next at %s, until %s",
			a.Type, a.Tries, z.Moment(a.TriedAt), Clean(a.Answer), z.Moment(a.NextAt), z.Moment(a.GiveUpAt)))
	}
	for _, a := range s.FailedActions {
		row(a.Action, fmt.Sprintf("%s failed at %s: %s%s", a.Type, z.Moment(a.FailedAt), Clean(a.Answer), map[bool]string{true: "; being sent again"}[a.Sending]))
	}
	if s.BatchID != contract.BatchSingle {
		row("batch", s.BatchID)
	}
	row("labels", label.Text(s.Labels))
	row("error", s.Error)
	row("error code", s.ErrorCode)
	if s.OutputFileName != "" && s.OutputFileSize != nil {
		row("output", fmt.Sprintf("%s, %s bytes", s.OutputFileName, Count(*s.OutputFileSize)))
	}
	row("created", z.Moment(s.CreatedAt))
	row("started", z.Moment(s.StartedAt))
	row("ended", z.Moment(s.CompletedAt))
	row("output until", z.Moment(s.OutputExpiresAt))
	return t.Table
}

// relative formats a run that triggered another one, or was triggered by it.
func relative(r contract.JobRunRef) string {
	if r.JobID == "" {
		return r.RunID
	}
	return r.RunID + " of job " + r.JobID
}

// fellBack formats a run's change to a fallback pool.
func (z Times) fellBack(f contract.FellBack) string {
	return fmt.Sprintf("from pool %s to pool %s at %s (%s): %s", f.From, f.To, z.Moment(f.At), f.Reason, Clean(f.Message))
}
