package trace

import (
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Span is a part of a run's lifetime that has ended. Start and End are in whole milliseconds.
type Span struct {
	Trace ID
	ID    SpanID
	// Parent is zero for the root span of a trace.
	Parent SpanID
	Name   string
	// Server: the span is the request of a client. Its parent is the client's span.
	Server     bool
	Start, End time.Time
	Attributes []Attribute
	Events     []Event
	// Failed: the span has the status Error, with Message.
	Failed  bool
	Message string
}

// Event is an event of a span.
type Event struct {
	Name       string
	At         time.Time
	Attributes []Attribute
}

// Attribute is a named value. The value is a string, an int64 or a bool.
type Attribute struct {
	Name  string
	Value any
}

// The names of the spans of a run that are not states, and of their events.
const (
	NameRequest = "request"
	NameRun     = "run"
	NameAttempt = "attempt"
	// NameEngine is the request of an inference task to an engine.
	NameEngine = "engine"
	// EventFirstToken is the event of a NameEngine span at the first token of the answer.
	EventFirstToken = "first_token"
)

// OfCommit returns the spans that a commit ends, children first. r is the record after the
// commit, events are the events of the commit.
//
//	request                    if a client created the run: its creation, without a duration
//	└─ run                     from the creation to the end
//	   ├─ Pending, Retrying …  the states without a machine
//	   └─ attempt              from ContainerCreating to the end of Terminating
//	      ├─ Running …         the states with a machine
//	      └─ engine            the request of an inference task to its engine
//
// Each event of the commit is added to the span of the state that it ends. An event that ends no
// state is added to the next such span of the commit, or else to the last one. If the commit
// ends neither a state nor a request, each of its events becomes a span without a duration.
func OfCommit(r run.Run, events []run.Event) []Span {
	c := commit{run: r, of: Of(r), entered: r.Metrics(r.EnteredAt).Entered}
	for _, e := range events {
		c.pending = append(c.pending, eventOf(e))
		if e.Seq == 1 && requested(r) {
			c.request(e)
		}
		if e.Seq > 1 && e.From != e.State {
			c.state(e)
		}
	}
	if n := len(c.spans); n > 0 {
		c.spans[c.last].Events = append(c.spans[c.last].Events, c.pending...)
	} else {
		for i, e := range c.pending {
			c.add(c.span(e.Name, "event", events[i].Seq, e.At, e.At), c.parent(events[i].State, events[i].Attempt), e.Attributes...)
		}
	}
	for _, e := range events {
		if e.Ends() {
			c.end(e)
		}
	}
	return c.spans
}

// requested reports whether a client's request created the run, also as a retry of another run.
func requested(r run.Run) bool {
	switch r.Trigger {
	case run.TriggerSchedule, run.TriggerCatchUp, run.TriggerJob, run.TriggerAfter, run.TriggerPool:
		return r.RetryOf != ""
	}
	return true
}

// commit collects the spans of a commit.
type commit struct {
	run run.Run
	of  Context
	// entered is the time at which the run last entered each state except the first one.
	entered map[run.State]time.Time
	spans   []Span
	// last is the index of the span to which the remaining pending events are added.
	last    int
	pending []Event
}

// request adds the span of the request that created the run. It starts with the creation of the
// run, because the record does not contain the arrival of the request.
func (c *commit) request(e run.Event) {
	s := c.span(NameRequest, NameRequest, 0, c.run.CreatedAt, e.At)
	s.Server = true
	client, _ := Client(c.run)
	c.take(s, client.Span)
}

// state adds the span of the state that the event leaves. If that state ends an attempt, it also
// adds the span of the attempt.
func (c *commit) state(e run.Event) {
	s := c.span(string(e.From), "state", e.Seq, c.since(e.From), e.At)
	attempt := e.From.HasMachine() && !e.State.HasMachine()
	s.Failed, s.Message = failure(e)
	c.take(s, c.parent(e.From, e.Attempt), Attribute{"state", string(e.From)}, number("attempt", e.Attempt))
	if e.From == run.Running {
		c.engine(e)
	}
	if !attempt {
		return
	}
	s = c.span(NameAttempt, NameAttempt, e.Attempt, c.since(run.ContainerCreating), e.At)
	more := []Attribute{number("attempt", e.Attempt)}
	s.Failed = e.State != run.Completed && e.State != run.Cancelled
	if a := c.run.Attempt; a.Number == e.Attempt {
		more = append(more, Attribute{"outcome", string(a.Outcome)})
		if a.Machine.Known() {
			more = append(more, Attribute{"machine_id", a.Machine.ID})
		}
		if a.Exit != nil {
			more = append(more, number("exit_code", a.Exit.Code))
		}
	}
	if f := c.run.Fault; s.Failed && f != nil {
		s.Message = f.Message
		more = append(more, Attribute{"fault", string(f.Code)})
	}
	c.add(s, c.of.Span, more...)
}

// engine adds the span of the request to an engine, if the attempt of the event sent a request.
func (c *commit) engine(e run.Event) {
	work, g := c.run.Work.Inference, c.run.Generation
	if work == nil || g == nil || c.run.Attempt.Number != e.Attempt || g.RequestedAt.IsZero() || g.RequestedAt.Before(c.since(run.ContainerCreating)) {
		return
	}
	s := c.span(NameEngine, NameEngine, e.Attempt, g.RequestedAt, g.RequestedAt.Add(time.Duration(g.DecodeMS)*time.Millisecond))
	more := []Attribute{
		{"engine", work.Engine},
		{"engine_version", g.EngineVersion},
		{"replica_id", g.Replica},
		{"model", work.Model},
		number("attempt", e.Attempt), number("tokens_in", g.TokensIn), number("tokens_out", g.TokensOut),
	}
	if !g.FirstTokenAt.IsZero() {
		more = append(more, Attribute{"first_token_ms", g.FirstTokenAt.Sub(g.RequestedAt).Milliseconds()})
		s.Events = []Event{{Name: EventFirstToken, At: g.FirstTokenAt.UTC().Truncate(time.Millisecond)}}
	}
	s.Failed, s.Message = failure(e)
	c.add(s, spanID(c.run, NameAttempt, e.Attempt), more...)
}

// end adds the span of the run.
func (c *commit) end(e run.Event) {
	s := c.span(NameRun, NameRun, 0, c.run.CreatedAt, e.At)
	s.Failed, s.Message = failure(e)
	more := []Attribute{{"state", string(e.State)}, number("attempt", e.Attempt), {"kind", c.run.Work.Kind}}
	if e.Fault != nil {
		more = append(more, Attribute{"fault", string(e.Fault.Code)})
	}
	var parent SpanID
	switch client, ok := Client(c.run); {
	case requested(c.run):
		parent = spanID(c.run, NameRequest, 0)
	case ok:
		parent = client.Span
	}
	c.add(s, parent, more...)
}

// failure returns the status and the message of a span that the event ends. A cancelled run has
// not failed.
func failure(e run.Event) (failed bool, message string) {
	failed = e.State == run.Failed || e.State == run.Orphaned
	if e.Fault == nil || e.Fault.Category == fault.CategoryCancel && !failed {
		return failed, ""
	}
	return true, e.Fault.Message
}

// parent returns the parent of a state's span: the span of the attempt for a state with a
// machine, otherwise the span of the run.
func (c *commit) parent(s run.State, attempt int) SpanID {
	if s.HasMachine() {
		return spanID(c.run, NameAttempt, attempt)
	}
	return c.of.Span
}

// since returns the time at which the run last entered a state.
func (c *commit) since(s run.State) time.Time {
	if at, ok := c.entered[s]; ok {
		return at
	}
	return c.run.CreatedAt
}

// span returns a span of a part of the run. If until is before since, the span has no duration:
// the clocks of two functions can differ.
func (c *commit) span(name, part string, number int, since, until time.Time) Span {
	if until.Before(since) {
		until = since
	}
	return Span{
		Trace: c.of.Trace, ID: spanID(c.run, part, number), Name: name,
		Start: since.UTC().Truncate(time.Millisecond), End: until.UTC().Truncate(time.Millisecond),
	}
}

// take adds a span and moves the pending events to it.
func (c *commit) take(s Span, parent SpanID, more ...Attribute) {
	s.Events, c.pending = c.pending, nil
	c.last = len(c.spans)
	c.add(s, parent, more...)
}

// add adds a span with the attributes of the run and those of more.
func (c *commit) add(s Span, parent SpanID, more ...Attribute) {
	r := c.run
	s.Parent = parent
	s.Attributes = []Attribute{{"tenant", r.Tenant}, {"run_id", r.ID}, {"task_id", r.TaskID}, {"correlation_id", r.CorrelationID}}
	if r.JobID != "" {
		s.Attributes = append(s.Attributes, Attribute{"job_id", r.JobID})
	}
	s.Attributes = append(s.Attributes, more...)
	c.spans = append(c.spans, s)
}

// eventOf converts an event of a run to an event of a span.
func eventOf(e run.Event) Event {
	attributes := []Attribute{{"event_id", e.ID}, number("seq", e.Seq), {"state", string(e.State)}, number("attempt", e.Attempt)}
	if e.Message != "" {
		attributes = append(attributes, Attribute{"message", e.Message})
	}
	if e.Fault != nil {
		attributes = append(attributes, Attribute{"fault", string(e.Fault.Code)}, Attribute{"fault_message", e.Fault.Message})
	}
	if e.Exit != nil {
		attributes = append(attributes, number("exit_code", e.Exit.Code))
	}
	return Event{Name: string(e.Type), At: e.At.UTC().Truncate(time.Millisecond), Attributes: attributes}
}

func number(name string, n int) Attribute { return Attribute{name, int64(n)} }
