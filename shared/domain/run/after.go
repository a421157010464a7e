package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// When is how a run of a job must end before a job that comes after it starts.
type When string

// The ways. The zero value means WhenSuccess. A skipped run meets WhenAlways only, and so does a
// cancelled one.
const (
	WhenSuccess When = "success" // Completed, and not skipped
	WhenFailure When = "failure" // Failed or Orphaned
	WhenAlways  When = "always"  // any end
)

// MetBy reports whether a run that has ended meets the condition.
func (w When) MetBy(r Run) bool {
	switch w {
	case WhenAlways:
		return true
	case WhenFailure:
		return r.State == Failed || r.State == Orphaned
	}
	return r.State == Completed && !r.Skipped
}

// Graph places a run in a graph: runs of jobs that come after each other. All of them have the same
// key. It is nil for a run that came after no other; see Run.GraphKey.
type Graph struct {
	// Key is the scheduled time of the graph, or the id of Root.
	Key string `json:"key"`
	// Root is the first run of the graph, or one of them.
	Root JobRun `json:"root"`
	// Depth counts the jobs of the lineage that the run came after, and that did not trigger it.
	Depth int `json:"depth,omitempty"`
	// Upstream are the runs that the run came after, ordered by job.
	Upstream []Parent `json:"upstream,omitempty"`
	// Origin is the Key of the first graph if the graph is a rerun of a part of it; empty otherwise.
	// Given are the runs of other graphs that jobs of the rerun come after. They have ended.
	Origin string   `json:"origin,omitempty"`
	Given  []JobRun `json:"given,omitempty"`
}

// keyFormat is the form of a scheduled time in a key and in the id of a firing.
const keyFormat = "20060102T150405Z"

// PlaceInGraph returns the place of the run in its graph. For a run that came after no other, the
// key is its scheduled time, or else its own id.
func (r Run) PlaceInGraph() Graph {
	if r.Graph != nil {
		return *r.Graph
	}
	g := Graph{Key: r.ID, Root: JobRun{r.JobID, r.ID}}
	if !r.ScheduledAt.IsZero() && r.ID == FiringID(r.JobID, r.ScheduledAt) {
		g.Key = r.ScheduledAt.UTC().Format(keyFormat)
	}
	return g
}

// OriginalGraph returns the key of the first graph of the run, if the run is a rerun in it.
func (r Run) OriginalGraph() string {
	place := r.PlaceInGraph()
	switch {
	case place.Origin != "":
		return place.Origin
	case r.Graph == nil && r.RetryOf != "" && !r.RetriedAt.IsZero():
		return r.RetriedAt.UTC().Format(keyFormat) // a retry of the first run
	}
	return place.Key
}

// BeginsGraph reports whether the run is the first of its graph.
func (r Run) BeginsGraph() bool { return r.Graph == nil || r.Graph.Root.RunID == r.ID }

// RunID returns the id of the run of a job in the graph. So each job has at most one.
func (g Graph) RunID(jobID string) string {
	for _, given := range g.Given {
		if given.JobID == jobID {
			return given.RunID
		}
	}
	if g.Key == g.Root.RunID && jobID == g.Root.JobID {
		return g.Root.RunID
	}
	return jobID + ":" + g.Key
}

// Gives reports whether the run is one of another graph that jobs of this one come after.
func (g Graph) Gives(runID string) bool {
	return slices.ContainsFunc(g.Given, func(given JobRun) bool { return given.RunID == runID })
}

// ScheduledAt returns the scheduled time of a graph; zero if a request began it.
func (g Graph) ScheduledAt() time.Time {
	at, err := time.Parse(keyFormat, g.Key)
	if err != nil {
		return time.Time{}
	}
	return at
}

// maxResults is the size in bytes of the results that a run gets from the runs that it came after.
// Further results are left out.
const maxResults = 64 << 10

// After returns the place and the lineage of a run of a job that comes after r. upstream are the
// runs of the jobs that it names.
func (r Run) After(upstream []Run) (g *Graph, lineage []string) {
	place := r.PlaceInGraph()
	place.Depth++
	place.Upstream = make([]Parent, len(upstream))
	slices.SortFunc(upstream, func(a, b Run) int { return strings.Compare(a.JobID, b.JobID) })
	left := maxResults
	for i, u := range upstream {
		p := u.AsParent()
		p.Skipped = u.Skipped
		if o := u.Output; o != nil && o.Text != nil && len(*o.Text) <= left && json.Valid([]byte(*o.Text)) {
			p.Result = json.RawMessage(*o.Text)
			left -= len(p.Result)
		}
		place.Upstream[i] = *p
	}
	return &place, append(slices.Clone(r.Lineage), r.JobID)
}

// UpstreamText is the size in bytes of the description of Graph.Upstream that fits into an
// environment variable. Linux refuses a variable of 128 KiB; platforms also limit all together.
const UpstreamText = 32 << 10

// storesUpstream reports whether the description of Graph.Upstream is stored as an object, because
// it may exceed UpstreamText. A presigned URL has at most 2 KiB.
func (g *Graph) storesUpstream() bool {
	size := 0
	if g != nil {
		for _, u := range g.Upstream {
			size += 256 + len(u.Result)
			if u.Output != nil {
				size += 2 << 10
			}
		}
	}
	return size > UpstreamText
}

// StoresUpstream reports whether the launches of the run's program store the description of the
// runs that it came after.
func (r Run) StoresUpstream() bool { return r.Work.Program != nil && r.Graph.storesUpstream() }

// BackfillLabel is the key of the label with the name of a run's backfill.
const BackfillLabel = "backfill"

// Backfills reports whether the run belongs to a backfill: of its own job, or of the first job of
// its graph.
func (r Run) Backfills() bool {
	return r.Trigger == TriggerBackfill || r.Trigger == TriggerAfter && r.Labels[BackfillLabel] != ""
}

// JoinBackfill returns r with the label and the priority of from, if that run belongs to a backfill.
func (r Run) JoinBackfill(from Run) Run {
	name := from.Labels[BackfillLabel]
	if !from.Backfills() || name == "" {
		return r
	}
	labels := maps.Clone(r.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[BackfillLabel] = name
	r.Labels, r.Priority = labels, from.Priority
	return r
}

// Need is a job that another one comes after.
type Need struct {
	JobID string
	When  When
	// Run is the run of the job in the graph; nil if it does not exist yet.
	Run *Run
}

// Turn says what follows from the runs of the jobs that a job comes after.
type Turn struct {
	// Start: each of them has ended as needed. Skip: one of them has ended otherwise; By is its run.
	Start, Skip bool
	Reason      SkipReason
	By          JobRun
}

// NextTurn decides whether a job starts, is skipped, or waits. A cancelled graph skips it, whatever
// it needs.
func NextTurn(needs []Need) (t Turn) {
	waits := false
	for _, n := range needs {
		switch {
		case n.Run != nil && n.Run.CancelsRest:
			return Turn{Skip: true, Reason: SkipUpstreamCancelled, By: JobRun{n.JobID, n.Run.ID}}
		case n.Run == nil || !n.Run.State.Terminal():
			waits = true
		case !n.When.MetBy(*n.Run) && !t.Skip:
			t = Turn{Skip: true, Reason: SkipUpstreamFailed, By: JobRun{n.JobID, n.Run.ID}}
		}
	}
	t.Start = !waits && !t.Skip
	return t
}

// follow adds the effect that considers the jobs that come after that of the run.
func (d *draft) follow() {
	if len(d.Followers) > 0 && d.State.Terminal() && !slices.ContainsFunc(d.Execution.Pending, isFollow) {
		d.effects = append(d.effects, Effect{Kind: EffectFollow})
	}
}

func isFollow(e Effect) bool { return e.Kind == EffectFollow }

// FollowerAdded: a job that was stored after the run waits for its end. It changes nothing if the
// run has ended.
type FollowerAdded struct{ JobID string }

func (f FollowerAdded) apply(d *draft) error {
	if !d.State.Terminal() && !slices.Contains(d.Followers, f.JobID) {
		d.Followers, d.changed = append(slices.Clone(d.Followers), f.JobID), true
	}
	return nil
}

// Followed: the jobs that come after that of the ended run were considered. It changes nothing if
// that is already recorded.
type Followed struct {
	// Runs are the runs that exist now: started or skipped.
	Runs []JobRun
	// Cancelled: CancelsRest was set when the jobs were considered.
	Cancelled bool
	// Partly: other jobs could not be considered yet. The effect stays pending.
	Partly bool
}

func (f Followed) apply(d *draft) error {
	if !slices.ContainsFunc(d.Execution.Pending, isFollow) || d.CancelsRest && !f.Cancelled {
		return nil
	}
	if !f.Partly {
		d.Execution.Pending, d.changed = pendingEffects(d.Execution.Pending, isFollow), true
	}
	var added []string
	for _, child := range f.Runs {
		if !slices.Contains(d.Triggered, child) {
			added = append(added, child.JobID)
			d.recordTriggered(&child)
		}
	}
	if len(added) == 0 {
		return nil
	}
	e := Event{Type: EventActionExecuted, Message: fmt.Sprintf("after: %s", strings.Join(added, ", "))}
	if len(added) == 1 {
		e.Triggered = &d.Triggered[len(d.Triggered)-1]
	}
	d.emit(e)
	return nil
}

// RestCancelled: what comes after the run in its graph is cancelled, also if the run has ended.
// The cancel request of the first run of a graph does the same.
type RestCancelled struct {
	By     string
	Scopes []string
	Reason string
}

func (f RestCancelled) actor(Run) Actor { return Actor{Subject: f.By, Scopes: f.Scopes} }

func (f RestCancelled) apply(d *draft) error {
	d.cancelRest(f.Reason)
	if d.State.Terminal() {
		return nil
	}
	return CancelRequested(f).apply(d)
}

// cancelRest marks the run, so that nothing comes after it. If it has ended, the jobs that come
// after it are considered again.
func (d *draft) cancelRest(reason string) {
	if d.CancelsRest || len(d.Followers) == 0 {
		return
	}
	d.CancelsRest, d.changed = true, true
	if !d.State.Terminal() {
		return
	}
	message := "what comes after the run is cancelled"
	if reason != "" {
		message += ": " + reason
	}
	d.emit(Event{Type: EventCancelRequested, Message: message})
	d.follow()
}
