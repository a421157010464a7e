package console

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/jobs"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d runData) content(l *ui.Layout) Node {
	return Group{
		Div(
			Class("head"), ID("head"), ui.Flag("data-part"),
			H1(ui.Bdi(ui.Short(90, d.What))), ui.Space(), ui.StateOf(d.State, d.Skipped).Badge(), ui.Space(),
			If(l.May("runs:write"), ui.Actions(d.pin(l), ui.Space(), d.action(l))),
		),
		d.facts(l),
		Div(ID("news"), ui.Flag("data-part"), d.cancelled(l), d.failure(), d.notices(l), d.why(l)),
		Div(ID("timeline"), ui.Flag("data-part"), ui.With(d.Timeline, func(t *timeline) Node { return t.content(l) })),
		Div(ID("children"), ui.Flag("data-part"), d.Children.Content(l)),
		ui.With(d.Log, func(log *logView) Node { return d.log(l, log) }),
		Div(Class("cards"), ID("cards"), ui.Flag("data-part"), d.input(), d.output(l), d.metrics(), d.machine(l)),
		Div(ID("artifacts"), ui.Flag("data-part"), d.artifacts(l)),
		Div(ID("graph"), ui.Flag("data-part"), d.Graph.Content(l)),
		Div(ID("lineage"), ui.Flag("data-part"), ui.With(d.Lineage, func(g *lineage) Node { return g.content(l) })),
		Div(ID("definition"), ui.Flag("data-part"), d.definition(l)),
		d.events(l),
	}
}

// action returns the form for what the reader can do with the run.
func (d runData) action(l *ui.Layout) Node {
	if d.Ended {
		return Group{
			If(d.Inference == nil, l.Button(ui.RunPath(d.RunID)+"/changes", Text("Rerun with changes…"))), ui.Space(),
			If(d.Children.Unsuccessful() > 0, Group{
				l.Post(ui.RunPath(d.RunID)+"/rerun", ui.HiddenField("key", d.RerunKey+"-failed"), ui.HiddenField("only", "failed"), Button(ui.Texts("Rerun unsuccessful (", d.Children.Unsuccessful(), ")"))), ui.Space(),
			}),
			l.Post(ui.RunPath(d.RunID)+"/rerun", ui.HiddenField("key", d.RerunKey), Button(Text("Rerun"))),
		}
	}
	return l.Post(ui.RunPath(d.RunID)+"/cancel", Button(Class("danger"), If(d.Cancel != nil, Disabled()), Text("Cancel")))
}

// pin returns the form that pins the run or unpins it.
func (d runData) pin(l *ui.Layout) Node {
	return l.Post(ui.RunPath(d.RunID)+"/pin", ui.HiddenField("what", ui.Choose(d.Pin != nil, "unpin", "pin")), Button(Text(ui.Choose(d.Pin != nil, "Unpin", "Pin"))))
}

func (d runData) facts(l *ui.Layout) Node {
	return Dl(
		Class("facts"), ID("facts"), ui.Flag("data-part"),
		ui.Fact("Run", ui.Mono(d.RunID)),
		If(d.JobID != "", ui.Fact("Job", l.A(ui.JobPath(d.JobID), Text(d.JobID)), ui.Texts(" version ", d.JobVersion))),
		If(d.Trigger != "", ui.Fact("Trigger", Text(ui.Visible(d.Trigger)))),
		If(d.Pool != "", ui.Fact("Pool", l.A(ui.PoolPath(d.Pool), Text(d.Pool)))),
		If(len(d.Labels) > 0, ui.Fact("Labels", l.LabelLinks("runs", d.Labels))),
		ui.Fact("Attempt", ui.Texts(d.Attempt)),
		ui.Fact("Created", l.Time(d.CreatedAt)),
		If(!d.ScheduledAt.IsZero(), ui.Fact("Scheduled", l.Time(d.ScheduledAt))),
		If(!d.StartedAt.IsZero(), ui.Fact(ui.Choose(d.Ended, "Took", "Running for"), Text(ui.Seconds(d.Seconds)))),
		If(!d.EndedAt.IsZero(), ui.Fact("Ended", l.Time(d.EndedAt))),
		If(!d.ExpiresAt.IsZero(), ui.Fact("Kept until", l.Time(d.ExpiresAt))),
		ui.With(d.Pin, func(p *contract.Pin) Node {
			return ui.Fact("Pinned", Group{l.Time(p.At), Text(" by "), ui.Mono(ui.Visible(p.By))})
		}),
		ui.With(d.Child, func(c *contract.Child) Node {
			return Group{
				If(c.Parent != "", ui.Fact("Child of", l.A(ui.RunPath(c.Parent), Text(c.Parent)))),
				ui.Fact("Item", ui.Bdi(ui.Short(300, c.Item)), Span(Class("quiet"), ui.Texts(" index ", c.Index))),
			}
		}),
		If(d.RetryOf != "", ui.Fact("Repeats", l.A(ui.RunPath(d.RetryOf), Text(d.RetryOf)))),
		ui.With(d.TriggeredBy, func(by *contract.JobRunRef) Node {
			return ui.Fact("Triggered by", l.A(ui.RunPath(by.RunID), Text(by.RunID)))
		}),
	)
}

func (d runData) cancelled(l *ui.Layout) Node {
	return ui.With(d.Cancel, func(c *contract.TaskCancel) Node {
		return ui.Quiet(
			Text("A cancel was requested "), l.Time(c.At), Text(" by "), ui.Mono(ui.Visible(c.By)),
			If(c.Reason != "", Group{Text(": "), ui.Bdi(ui.Short(300, c.Reason))}),
		)
	})
}

// failure returns the error of the run, with the last lines of its log.
func (d runData) failure() Node {
	return ui.With(d.Fault, func(f *contract.Fault) Node {
		return ui.Block(
			"error", ui.Choose(d.Ended, "Error", "Last error"), Class("card bad"),
			P(ui.Bdi(ui.Visible(f.Message))),
			ui.Quiet(
				ui.Mono(f.Code), Text(" · caused by "+f.Blame+" · "), Text(ui.Choose(f.Retryable, "a retry may help", "a retry does not help")),
				ui.With(d.Machine, func(m *contract.Machine) Node {
					return ui.With(m.Exit, func(e *contract.Exit) Node { return Group{Text(" · "), exit(e)} })
				}),
			),
			ui.With(d.Log, func(log *logView) Node {
				return ui.With(log.Last(20), func(last string) Node {
					return Pre(TabIndex("0"), Aria("label", "The last lines of the log"), Text(last))
				})
			}),
		)
	})
}

// exit returns how a program ended.
func exit(e *contract.Exit) Node {
	return Group{ui.Texts("exit code ", e.Code), If(e.Signal != 0, ui.Texts(", signal ", e.Signal)), If(e.OOM, Text(", out of memory"))}
}

// why returns what the run waits for.
func (d runData) why(l *ui.Layout) Node {
	return ui.With(d.Why, func(e *contract.Explanation) Node {
		return ui.Block(
			"why", "Why", Class("card wait"),
			P(ui.Bdi(ui.Visible(e.Message))),
			ui.With(e.Expected, func(start *contract.ExpectedStart) Node {
				if start.Measured == 0 {
					return ui.Quiet(Text("When it starts is unknown: no run of the ones before it has been measured yet."))
				}
				return P(
					Text("Expected start "), l.Time(start.P50), Text(", at the latest "), l.Time(start.P90), Text(" in nine of ten cases "),
					Span(Class("quiet"), ui.Texts("(from ", start.Measured, " measured runs)")),
				)
			}),
			If(len(e.Limits) > 0, limitsTable(l, e.Limits)),
			ui.With(e.Change, page.ToChange),
			ui.Copied("sortie explain "+d.TaskID),
		)
	})
}

func limitsTable(l *ui.Layout, limits []contract.ExplainLimit) Node {
	holder := func(h contract.Holder) Node {
		return Group{
			l.A(ui.RunPath(h.RunID), Text(cmp.Or(h.JobID, h.TaskID))), ui.Space(),
			Span(Class("quiet"), Text("since "), l.Time(h.Since), If(h.Cancelling, Text(", cancelling"))),
		}
	}
	return Div(Class("table"), Table(
		Caption(Text("Limits that apply")),
		ui.Headings(ui.Columns("Limit"), ui.NumberColumns("Used", "Allowed", "Queued"), ui.Columns("Held by")),
		TBody(Map(limits, func(limited contract.ExplainLimit) Node {
			return Tr(
				Td(Text(limited.Kind+" "+ui.Visible(limited.Name))), ui.Num(ui.Texts(limited.Used)), ui.Num(limit(limited.Allowed)), ui.Num(ui.Texts(limited.Queued)),
				ui.Wide(ui.Commas(limited.Holders, holder)),
			)
		})),
	))
}

// content returns the timeline of a run, as a picture and as a table.
func (t *timeline) content(l *ui.Layout) Node {
	return ui.Block("time", "Timeline", Div(
		Class("card"),
		Div(Class("scroll"), SVG(
			Class("timeline"), ui.Attribute("viewBox", "0 0 ", t.Width, " ", t.Height), Role("group"), Aria("label", "States of the run, to scale"),
			Map(t.Ticks, func(at tick) Node {
				return Group{
					El("line", Class("grid"), ui.Attribute("x1", at.X), ui.Attribute("x2", at.X), ui.Attribute("y1", "0"), ui.Attribute("y2", t.Height)),
					El("text", ui.Attribute("x", at.X), ui.Attribute("y", t.Height), ui.Attribute("dx", "3"), ui.Attribute("dy", "-4"), Text(at.Text)),
				}
			}),
			Map(t.Rows, func(row timelineRow) Node {
				return Group{El("text", ui.Attribute("x", "0"), ui.Attribute("y", row.Y), Text(row.Label)), Map(row.Bars, bar.picture)}
			}),
		)),
		Details(Summary(ID("h-states"), Text("As a table")), ui.Grid(ui.Headings(ui.Columns("State"), ui.NumberColumns("Attempt"), ui.Columns("From"), ui.NumberColumns("For")), Map(t.Bars, func(b bar) Node {
			return Tr(Td(b.State.Badge()), ui.Num(ui.Texts(b.Attempt)), Td(l.Time(b.From)), ui.Num(Text(ui.Seconds(b.Seconds)), If(b.Open, Text(" so far"))))
		}))),
	))
}

func (b bar) picture() Node {
	return A(
		ui.Relative("href", "#h-states"), Class(b.State.Class), Aria("label", b.Name()),
		El("rect", ui.Attribute("x", b.X), ui.Attribute("y", b.Y), ui.Attribute("width", b.W), ui.Attribute("height", b.H), ui.Attribute("rx", "2"), El("title", Text(b.Name()))),
	)
}

func (d runData) events(l *ui.Layout) Node {
	envelope := func(shown Node, id string) Node {
		if !l.May("events:read") {
			return shown
		}
		return l.A("search?q="+ui.QueryValue("urn:orch:event:"+id), TitleAttr("The envelope of the event"), shown)
	}
	event := func(e contract.TaskEvent) Node {
		return Tr(
			ui.Num(ui.Texts(e.Seq)), Td(l.Time(e.OccurredAt)), Td(envelope(ui.Mono(e.Type), e.EventID)), Td(ui.StateOf(e.State, false).Badge()), ui.Num(ui.Texts(e.Attempt)),
			ui.Wide(ui.Bdi(ui.Short(200, e.Message)), ui.With(e.Fault, func(f *contract.Fault) Node { return ui.SubLine(Text(f.Code+": "), ui.Bdi(ui.Short(300, f.Message))) })),
		)
	}
	return ui.Block(
		"events", "Events", ID("events"), ui.Flag("data-part"),
		ui.Scrolled(ui.Headings(ui.NumberColumns("Seq"), ui.Columns("Time", "Event", "State"), ui.NumberColumns("Attempt"), ui.Columns("Message")), Map(d.Events, event)),
		ui.Quiet(
			If(d.MoreAfter != 0, Group{A(ui.Relative("href", ui.Joined("?after=", d.MoreAfter, "#h-events")), Text("Later events")), Text(" · ")}),
			l.A("json/v1/tasks/"+ui.Segment(d.TaskID)+"/events", Text("as JSON")),
		),
	)
}

// input returns what the run was started with.
func (d runData) input() Node {
	visibleTerm := func(name, value string) Node { return If(value != "", ui.Term(name, Text(ui.Visible(value)))) }
	return ui.Card("input", "Input", Dl(
		ui.With(d.Program, programTerms),
		Map(slices.Sorted(maps.Keys(d.Inputs)), func(name string) Node {
			return Group{Dt(ui.Mono(ui.Visible(name))), Dd(ui.Mono(ui.Short(300, jobs.InputText(d.Inputs[name]))))}
		}),
		ui.With(d.Event, func(e *contract.TriggeringEvent) Node {
			return Group{
				ui.Term("Event", ui.Mono(ui.Short(300, e.ID))), ui.Term("Event source", ui.Mono(ui.Short(300, e.Source))),
				ui.Term("Event type", ui.Mono(ui.Short(300, e.Type))), If(e.Subject != "", ui.Term("Event subject", ui.Mono(ui.Short(300, e.Subject)))),
			}
		}),
		If(d.PI != "", ui.Term("Entity", ui.Mono(ui.Visible(d.PI)))),
		visibleTerm("Format", d.Format),
		If(len(d.Options) > 0, ui.Term("Options", ui.Mono(ui.Visible(string(d.Options))))),
		ui.With(d.Inference, func(i *contract.InferenceDetails) Node {
			return Group{ui.Term("Model", Text(ui.Visible(i.Model)+" on "+ui.Visible(i.Engine))), ui.Term("Tokens", ui.Texts("at most ", i.MaxTokens))}
		}),
		If(d.Priority != "", ui.Term("Priority", Text(d.Priority))),
		visibleTerm("Concurrency key", d.ConcurrencyKey),
		ui.With(d.Policy.TimeLimitSeconds, func(s *int) Node { return ui.Term("Time limit", ui.Texts(*s, " s")) }),
		ui.With(d.Policy.DeadlineSeconds, func(s *int) Node { return ui.Term("Deadline", ui.Texts(*s, " s for all attempts")) }),
		ui.Term("Correlation id", ui.Mono(ui.Visible(d.CorrelationID))),
	))
}

func programTerms(p *contract.Program) Node {
	var command []string
	for _, argument := range p.Command {
		command = append(command, ui.Visible(argument))
	}
	variable := func(name string) Node {
		value := p.Env[name]
		shown := ui.Mono(ui.Visible(value.Value))
		if value.SecretRef != "" {
			shown = Group{Text("secret "), ui.Mono(ui.Visible(value.SecretRef))}
		}
		return Group{Dt(ui.Mono(ui.Visible(name))), Dd(shown)}
	}
	return Group{
		ui.Term("Image", ui.Mono(ui.Visible(p.Image))),
		If(len(command) > 0, ui.Term("Command", ui.Mono(strings.Join(command, " ")))),
		Map(slices.Sorted(maps.Keys(p.Env)), variable),
		ui.With(p.Input, func(i *contract.ProgramInput) Node { return ui.Term("Standard input", Text(ui.Size(i.Size))) }),
	}
}

func (d runData) metrics() Node {
	return If(len(d.Metrics) > 0, ui.Card("metrics", "Metrics", Pre(TabIndex("0"), Text(ui.Visible(string(d.Metrics))))))
}

func (d runData) machine(l *ui.Layout) Node {
	if d.Machine == nil {
		return ui.Card("machine", "Machine", ui.Quiet(Text(ui.Choose(d.Ended, "There is no machine.", "There is no machine yet."))))
	}
	m := d.Machine
	return ui.Card("machine", "Machine", Dl(
		ui.Term("Name", ui.Mono(ui.Visible(m.Name))), If(m.ID != "", ui.Term("Id", ui.Mono(ui.Visible(m.ID)))),
		ui.With(m.Exit, func(e *contract.Exit) Node { return ui.Term("End", exit(e)) }),
		ui.With(d.Worker, func(w *contract.Worker) Node {
			return Group{
				If(w.ID != "", ui.Term("Worker", ui.Mono(ui.Visible(w.ID)))),
				If(!w.LastHeartbeatAt.IsZero(), ui.Term("Last contact", l.Time(w.LastHeartbeatAt))),
			}
		}),
		ui.Term("Start took", Text(ui.Seconds(d.Measured.StartLatencySeconds))),
	))
}
