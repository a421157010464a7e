package api

import (
	"encoding/json"
	"time"

	"github.com/sortie-dev/sortie/shared/app/children"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// childrenOf returns the wire form of the counts of the children of a run; nil without children.
func childrenOf(r run.Run) *contract.Children {
	if r.Fan == nil || r.Work.Fan == nil {
		return nil
	}
	c := r.Fan.Counts()
	return &contract.Children{
		Total: c.Total, Waiting: c.Waiting, Running: c.Running, Succeeded: c.Succeeded, Failed: c.Failed, Cancelled: c.Cancelled, Skipped: c.Skipped,
		MaxParallel: r.Work.Fan.Parallel, MaxFailures: r.Work.Fan.MaxFailures, Stopped: string(r.Fan.Stopped),
	}
}

// RunChildren returns the wire form of a page of children.
func RunChildren(l children.Listing) contract.RunChildren {
	page := contract.RunChildren{Children: make([]contract.RunChild, len(l.Children)), Counts: childrenOf(l.Parent), NextCursor: l.Next}
	for i, c := range l.Children {
		page.Children[i] = runChild(c, l.At)
	}
	return page
}

func runChild(c children.Listed, now time.Time) contract.RunChild {
	r := c.Run
	child := contract.RunChild{
		Index: c.Item.Index, Item: c.Item.Text, State: string(c.Status), RunID: r.ID, TaskID: r.TaskID, RunState: string(r.State),
		Attempt: r.Attempt.Number, StartedAt: startedAt(r), EndedAt: r.EndedAt, Fault: faultOf(r.Fault),
	}
	if r.Attempt.Exit != nil {
		child.ExitCode = &r.Attempt.Exit.Code
	}
	if !child.StartedAt.IsZero() {
		if !r.EndedAt.IsZero() {
			now = r.EndedAt
		}
		child.DurationSeconds = new(seconds(now.Sub(child.StartedAt)))
	}
	return child
}

// ItemValues returns the items in a request; nil if it has none.
func ItemValues(texts []json.RawMessage) []spec.Value {
	if texts == nil {
		return nil
	}
	values := make([]spec.Value, len(texts))
	for i, v := range texts {
		values[i] = spec.Value(v)
	}
	return values
}

// childOf returns the wire form of the place of a child; nil for other runs.
func childOf(r run.Run) *contract.Child {
	if r.Child == nil {
		return nil
	}
	return &contract.Child{Parent: r.Child.Parent, Index: r.Child.Item.Index, Item: r.Child.Item.Text}
}
