package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d runData) content(l *layout) Node {
	return Group{
		Div(
			Class("head"), ID("head"), flag("data-part"),
			H1(bdi(short(90, d.What))), space(), stateOf(d.State, d.Skipped).badge(), space(),
			If(l.May("runs:write"), actions(d.pin(l), space(), d.action(l))),
		),
		d.facts(l),
		Div(ID("news"), flag("data-part"), d.cancelled(l), d.failure(), d.why(l)),
		Div(ID("timeline"), flag("data-part"), with(d.Timeline, func(t *timeline) Node { return t.content(l) })),
		with(d.Log, func(log *logView) Node { return d.log(l, log) }),
		Div(Class("cards"), ID("cards"), flag("data-part"), d.input(), d.output(l), d.metrics(), d.machine(l)),
		Div(ID("artifacts"), flag("data-part"), d.artifacts(l)),
		Div(ID("lineage"), flag("data-part"), with(d.Lineage, func(g *lineage) Node { return g.content(l) })),
		Div(ID("definition"), flag("data-part"), d.definition(l)),
		d.events(l),
	}
}

// action returns the form for what the reader can do with the run.
func (d runData) action(l *layout) Node {
	if d.Ended {
		return Group{
			If(d.Inference == nil, l.button(runPath(d.RunID)+"/changes", Text("Rerun with changes…"))), space(),
			l.post(runPath(d.RunID)+"/rerun", hiddenField("key", d.RerunKey), Button(Text("Rerun"))),
		}
	}
	return l.post(runPath(d.RunID)+"/cancel", Button(Class("danger"), If(d.Cancel != nil, Disabled()), Text("Cancel")))
}

// pin returns the form that pins the run or unpins it.
func (d runData) pin(l *layout) Node {
	return l.post(runPath(d.RunID)+"/pin", hiddenField("what", choose(d.Pin != nil, "unpin", "pin")), Button(Text(choose(d.Pin != nil, "Unpin", "Pin"))))
}

func (d runData) facts(l *layout) Node {
	return Dl(
		Class("facts"), ID("facts"), flag("data-part"),
		fact("Run", code(d.RunID)),
		If(d.JobID != "", fact("Job", l.a(jobPath(d.JobID), Text(d.JobID)), text(" version ", d.JobVersion))),
		If(d.Trigger != "", fact("Trigger", Text(visible(d.Trigger)))),
		If(d.Pool != "", fact("Pool", l.a(poolPath(d.Pool), Text(d.Pool)))),
		If(len(d.Labels) > 0, fact("Labels", l.labelLinks("runs", d.Labels))),
		fact("Attempt", text(d.Attempt)),
		fact("Created", l.time(d.CreatedAt)),
		If(!d.ScheduledAt.IsZero(), fact("Scheduled", l.time(d.ScheduledAt))),
		If(!d.StartedAt.IsZero(), fact(choose(d.Ended, "Took", "Running for"), Text(seconds(d.Seconds)))),
		If(!d.EndedAt.IsZero(), fact("Ended", l.time(d.EndedAt))),
		If(!d.ExpiresAt.IsZero(), fact("Kept until", l.time(d.ExpiresAt))),
		with(d.Pin, func(p *contract.Pin) Node {
			return fact("Pinned", Group{l.time(p.At), Text(" by "), code(visible(p.By))})
		}),
		If(d.RetryOf != "", fact("Repeats", l.a(runPath(d.RetryOf), Text(d.RetryOf)))),
		with(d.TriggeredBy, func(by *contract.JobRunRef) Node { return fact("Triggered by", l.a(runPath(by.RunID), Text(by.RunID))) }),
	)
}

func (d runData) cancelled(l *layout) Node {
	return with(d.Cancel, func(c *contract.TaskCancel) Node {
		return quiet(
			Text("A cancel was requested "), l.time(c.At), Text(" by "), code(visible(c.By)),
			If(c.Reason != "", Group{Text(": "), bdi(short(300, c.Reason))}),
		)
	})
}

// failure returns the error of the run, with the last lines of its log.
func (d runData) failure() Node {
	return with(d.Fault, func(f *contract.Fault) Node {
		return section(
			"error", choose(d.Ended, "Error", "Last error"), Class("card bad"),
			P(bdi(visible(f.Message))),
			quiet(
				code(f.Code), Text(" · caused by "+f.Blame+" · "), Text(choose(f.Retryable, "a retry may help", "a retry does not help")),
				with(d.Machine, func(m *contract.Machine) Node {
					return with(m.Exit, func(e *contract.Exit) Node { return Group{Text(" · "), exit(e)} })
				}),
			),
			with(d.Log, func(log *logView) Node {
				return with(log.Last(20), func(last string) Node {
					return Pre(TabIndex("0"), Aria("label", "The last lines of the log"), Text(last))
				})
			}),
		)
	})
}

// exit returns how a program ended.
func exit(e *contract.Exit) Node {
	return Group{text("exit code ", e.Code), If(e.Signal != 0, text(", signal ", e.Signal)), If(e.OOM, Text(", out of memory"))}
}

// why returns what the run waits for.
func (d runData) why(l *layout) Node {
	return with(d.Why, func(e *contract.Explanation) Node {
		return section(
			"why", "Why", Class("card wait"),
			P(bdi(visible(e.Message))),
			with(e.Expected, func(start *contract.ExpectedStart) Node {
				return P(
					Text("Expected start "), l.time(start.P50), Text(", at the latest "), l.time(start.P90), Text(" in nine of ten cases "),
					Span(Class("quiet"), text("(from ", start.Measured, " measured runs)")),
				)
			}),
			If(len(e.Limits) > 0, limitsTable(l, e.Limits)),
			with(e.Change, toChange),
			copied("sortie explain "+d.TaskID),
		)
	})
}

// toChange returns what would change a reason.
func toChange(c *contract.Change) Node {
	return P(B(Text("To change it:")), space(), bdi(visible(c.Message)))
}

func limitsTable(l *layout, limits []contract.ExplainLimit) Node {
	holder := func(h contract.Holder) Node {
		return Group{
			l.a(runPath(h.RunID), Text(cmp.Or(h.JobID, h.TaskID))), space(),
			Span(Class("quiet"), Text("since "), l.time(h.Since), If(h.Cancelling, Text(", cancelling"))),
		}
	}
	return Div(Class("table"), Table(
		Caption(Text("Limits that apply")),
		headings(th("Limit"), thNum("Used", "Allowed", "Queued"), th("Held by")),
		TBody(Map(limits, func(limited contract.ExplainLimit) Node {
			return Tr(
				Td(Text(limited.Kind+" "+visible(limited.Name))), num(text(limited.Used)), num(limit(limited.Allowed)), num(text(limited.Queued)),
				wide(commas(limited.Holders, holder)),
			)
		})),
	))
}

// content returns the timeline of a run, as a picture and as a table.
func (t *timeline) content(l *layout) Node {
	return section("time", "Timeline", Div(
		Class("card"),
		Div(Class("scroll"), SVG(
			Class("timeline"), attr("viewBox", "0 0 ", t.Width, " ", t.Height), Role("group"), Aria("label", "States of the run, to scale"),
			Map(t.Ticks, func(at tick) Node {
				return Group{
					El("line", Class("grid"), attr("x1", at.X), attr("x2", at.X), attr("y1", "0"), attr("y2", t.Height)),
					El("text", attr("x", at.X), attr("y", t.Height), attr("dx", "3"), attr("dy", "-4"), Text(at.Text)),
				}
			}),
			Map(t.Rows, func(row timelineRow) Node {
				return Group{El("text", attr("x", "0"), attr("y", row.Y), Text(row.Label)), Map(row.Bars, bar.picture)}
			}),
		)),
		Details(Summary(ID("h-states"), Text("As a table")), table(headings(th("State"), thNum("Attempt"), th("From"), thNum("For")), Map(t.Bars, func(b bar) Node {
			return Tr(Td(b.State.badge()), num(text(b.Attempt)), Td(l.time(b.From)), num(Text(seconds(b.Seconds)), If(b.Open, Text(" so far"))))
		}))),
	))
}

func (b bar) picture() Node {
	return A(
		relative("href", "#h-states"), Class(b.State.Class), Aria("label", b.Name()),
		El("rect", attr("x", b.X), attr("y", b.Y), attr("width", b.W), attr("height", b.H), attr("rx", "2"), El("title", Text(b.Name()))),
	)
}

func (d runData) events(l *layout) Node {
	envelope := func(shown Node, id string) Node {
		if !l.May("events:read") {
			return shown
		}
		return l.a("search?q="+queryValue("urn:orch:event:"+id), TitleAttr("The envelope of the event"), shown)
	}
	event := func(e contract.TaskEvent) Node {
		return Tr(
			num(text(e.Seq)), Td(l.time(e.OccurredAt)), Td(envelope(code(e.Type), e.EventID)), Td(stateOf(e.State, false).badge()), num(text(e.Attempt)),
			wide(bdi(short(200, e.Message)), with(e.Fault, func(f *contract.Fault) Node { return sub(Text(f.Code+": "), bdi(short(300, f.Message))) })),
		)
	}
	return section(
		"events", "Events", ID("events"), flag("data-part"),
		scrolled(headings(thNum("Seq"), th("Time", "Event", "State"), thNum("Attempt"), th("Message")), Map(d.Events, event)),
		quiet(
			If(d.MoreAfter != 0, Group{A(relative("href", joined("?after=", d.MoreAfter, "#h-events")), Text("Later events")), Text(" · ")}),
			l.a("json/v1/tasks/"+segment(d.TaskID)+"/events", Text("as JSON")),
		),
	)
}

// input returns what the run was started with.
func (d runData) input() Node {
	visibleTerm := func(name, value string) Node { return If(value != "", term(name, Text(visible(value)))) }
	return card("input", "Input", Dl(
		with(d.Program, programTerms),
		Map(slices.Sorted(maps.Keys(d.Inputs)), func(name string) Node {
			return Group{Dt(code(visible(name))), Dd(code(short(300, inputText(d.Inputs[name]))))}
		}),
		If(d.PI != "", term("Entity", code(visible(d.PI)))),
		visibleTerm("Format", d.Format),
		If(len(d.Options) > 0, term("Options", code(visible(string(d.Options))))),
		with(d.Inference, func(i *contract.InferenceDetails) Node {
			return Group{term("Model", Text(visible(i.Model)+" on "+visible(i.Engine))), term("Tokens", text("at most ", i.MaxTokens))}
		}),
		If(d.Priority != "", term("Priority", Text(d.Priority))),
		visibleTerm("Concurrency key", d.ConcurrencyKey),
		with(d.Policy.TimeLimitSeconds, func(s *int) Node { return term("Time limit", text(*s, " s")) }),
		with(d.Policy.DeadlineSeconds, func(s *int) Node { return term("Deadline", text(*s, " s for all attempts")) }),
		term("Correlation id", code(visible(d.CorrelationID))),
	))
}

func programTerms(p *contract.Program) Node {
	var command []string
	for _, argument := range p.Command {
		command = append(command, visible(argument))
	}
	variable := func(name string) Node {
		value := p.Env[name]
		shown := code(visible(value.Value))
		if value.SecretRef != "" {
			shown = Group{Text("secret "), code(visible(value.SecretRef))}
		}
		return Group{Dt(code(visible(name))), Dd(shown)}
	}
	return Group{
		term("Image", code(visible(p.Image))),
		If(len(command) > 0, term("Command", code(strings.Join(command, " ")))),
		Map(slices.Sorted(maps.Keys(p.Env)), variable),
		with(p.Input, func(i *contract.ProgramInput) Node { return term("Standard input", Text(size(i.Size))) }),
	}
}

func (d runData) metrics() Node {
	return If(len(d.Metrics) > 0, card("metrics", "Metrics", Pre(TabIndex("0"), Text(visible(string(d.Metrics))))))
}

func (d runData) machine(l *layout) Node {
	if d.Machine == nil {
		return card("machine", "Machine", quiet(Text(choose(d.Ended, "There is no machine.", "There is no machine yet."))))
	}
	m := d.Machine
	return card("machine", "Machine", Dl(
		term("Name", code(visible(m.Name))), If(m.ID != "", term("Id", code(visible(m.ID)))),
		with(m.Exit, func(e *contract.Exit) Node { return term("End", exit(e)) }),
		with(d.Worker, func(w *contract.Worker) Node {
			return Group{
				If(w.ID != "", term("Worker", code(visible(w.ID)))),
				If(!w.LastHeartbeatAt.IsZero(), term("Last contact", l.time(w.LastHeartbeatAt))),
			}
		}),
		term("Start took", Text(seconds(d.Measured.StartLatencySeconds))),
	))
}
