package console

import (
	"cmp"
	"fmt"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d poolData) content(l *ui.Layout) Node {
	return Group{
		P(Class("crumbs"), l.A("pools", Text("Pools")), Text(" /")),
		ui.Top(Text(d.ID), d.State.Badge(), ui.Space(), If(l.May("admin"), ui.Actions(
			If(d.Draining, l.Post(ui.PoolPath(d.ID)+"/resume", Button(Class("primary"), Text("Resume")))),
		))),
		d.facts(l), If(d.Draining, d.drain(l)), d.slots(l), d.queue(l), d.replicas(l),
		Div(Class("cards"), d.machines(), d.settings(l), If(l.May("admin"), d.change(l))),
		d.errors(l),
	}
}

func (d poolData) facts(l *ui.Layout) Node {
	m := d.Health.Metrics
	return Dl(
		Class("facts"), ID("p-facts"), ui.Flag("data-part"),
		ui.Fact("Slots", Text(d.Slots.Text+" "), If(d.Limit != 0, d.Slots.picture())),
		ui.Fact("Queued", ui.Texts(d.Queued), If(d.QueueLimit != 0, ui.Texts(" of ", d.QueueLimit))),
		If(d.Queued != 0, ui.Fact("Longest wait", Text(ui.Duration(d.LongestWait())))),
		ui.With(d.Wait, waitFact), d.runsOn(),
		ui.With(m.StartP50Seconds, func(half *float64) Node {
			var most float64
			if m.StartP99Seconds != nil {
				most = *m.StartP99Seconds
			}
			return ui.Fact("Starts", ui.Texts(ui.Seconds(*half), " for half of ", m.MeasuredStarts, ", ", ui.Seconds(most), " for 99 of 100"))
		}),
		ui.With(m.StartsPerSecond, func(rate *float64) Node {
			return ui.Fact("Permitted starts", Text(fmt.Sprintf("%.2g a second", *rate)), If(!m.NextStartAt.IsZero(), Group{Text(", next "), l.Time(m.NextStartAt)}))
		}),
		If(d.Version != 0, ui.Fact("Version", ui.Texts(d.Version, " "), Span(Class("quiet"), l.Time(d.UpdatedAt), ui.By(d.UpdatedBy)))),
	)
}

func waitFact(w *contract.PoolWait) Node {
	measured := "not measured"
	if w.Measured != 0 {
		measured = ui.Joined(w.Measured, " measured runs")
	}
	return ui.Fact(
		"A new run waits", ui.Texts(ui.Seconds(w.P50Seconds), ", 9 of 10 up to ", ui.Seconds(w.P90Seconds), " "), Span(Class("quiet"), ui.Texts("(", measured, ")")),
	)
}

func (d poolData) runsOn() Node {
	if e := d.Engine; e != nil {
		return ui.Fact("Engine", ui.Texts(ui.Visible(e.Kind), " with ", ui.Visible(e.Model)))
	}
	return ui.Fact("Runner", Text(cmp.Or(d.Runner, "of the deployment")))
}

func (d poolData) drain(l *ui.Layout) Node {
	return ui.Block("drain", "The pool drains", Class("card wait"), P(
		Text("No run gets a slot until the pool is resumed."),
		ui.With(d.Health.Drain, func(s *contract.PoolDrainState) Node {
			return Group{
				Text(" Phase: "), B(Text(s.Phase)), ui.Texts(". ", s.Runs, " runs and ", s.WarmMachines, " warm machines remain."),
				If(!s.Deadline.IsZero(), Group{Text(" Workers are asked to stop "), l.Time(s.Deadline), Text(".")}),
			}
		}),
	))
}

// slots returns the runs that hold slots.
func (d poolData) slots(l *ui.Layout) Node {
	part := Group{ID("p-slots"), ui.Flag("data-part")}
	held := d.Health.Remaining
	if len(held) == 0 {
		return ui.Block("slots", "Slots", part, ui.Quiet(Text("No run holds a slot.")))
	}
	return ui.Block(
		"slots", "Slots", part,
		ui.Listing(ui.Headings(ui.Columns("State", "Held by", "Run", "Since")), Map(held, func(h contract.Holder) Node {
			job := ui.None("no job")
			if h.JobID != "" {
				job = l.A(ui.JobPath(h.JobID), Text(h.JobID))
			}
			return Tr(
				Data("run", h.RunID), Td(ui.StateOf(h.State, false).Badge(), If(h.Cancelling, ui.SubLine(Text("asked to end")))), Td(job),
				ui.Wide(l.A(ui.RunPath(h.RunID), Text(h.RunID))), Td(Data("label", "since"), l.Time(h.Since)),
			)
		})),
		If(d.Held > len(held), ui.Quiet(
			ui.Texts("These are the first ", len(held), " of ", d.Held, ". "), l.A(d.runs("Running"), Text("All running runs")),
		)),
	)
}

// runs returns the address of the pool's runs in a state.
func (d poolData) runs(state string) string {
	return "runs?pool=" + ui.QueryValue(d.ID) + "&state=" + state
}

// queue returns the runs that wait for a slot, in their order.
func (d poolData) queue(l *ui.Layout) Node {
	part := Group{ID("p-queue"), ui.Flag("data-part")}
	if len(d.Queue) == 0 {
		return ui.Block("queue", "Queue", part, ui.Quiet(Text("No run waits.")))
	}
	return ui.Block(
		"queue", "Queue", part,
		ui.Listing(
			ui.Headings(ui.NumberColumns("Position"), ui.Columns("What", "Priority", "Waits since", "Expected start")),
			Map(d.Queue, func(q queuedRun) Node { return q.row(l) }),
		),
		ui.Quiet(
			If(d.Queued > len(d.Queue), ui.Texts(d.Queued, " runs wait. ")), l.A(d.runs("Pending"), Text("All waiting runs")),
		),
	)
}

func (q queuedRun) row(l *ui.Layout) Node {
	var detail Node
	switch {
	case q.Message != "":
		detail = ui.SubLine(ui.Bdi(ui.Short(200, q.Message)))
	case q.Detail != "":
		detail = ui.SubLine(ui.Bdi(ui.Short(90, q.Detail)))
	}
	expected := ui.None("–")
	if e := q.Expected; e != nil {
		expected = Group{l.Time(e.P50), ui.SubLine(Text("9 of 10: "), l.Time(e.P90))}
	}
	return Tr(
		Data("run", q.RunID), ui.Labelled("position", ui.Texts(q.Position)), ui.Wide(l.A(ui.RunPath(q.RunID), ui.Bdi(ui.Short(80, q.What))), detail),
		ui.Extra(Text(cmp.Or(q.Priority, "normal"))), Td(Data("label", "since"), l.Time(q.EnteredAt)), Td(Data("label", "starts"), expected),
	)
}

func (d poolData) replicas(l *ui.Layout) Node {
	if len(d.Health.Replicas) == 0 {
		return nil
	}
	return ui.Block("replicas", "Replicas", ui.Listing(
		ui.Headings(ui.Columns("State", "Replica"), ui.NumberColumns("Tasks"), ui.Columns("Version", "Machine")),
		Map(d.Health.Replicas, func(r contract.ReplicaHealth) Node {
			state := ui.Badge("bad", "cross", "Down")
			switch {
			case r.Ready:
				state = ui.Badge("good", "check", "Ready")
			case r.Live:
				state = ui.Badge("wait", "clock", "Not ready")
			}
			return Tr(
				Td(state), ui.Wide(Text(ui.Visible(r.ID)), If(r.Reason != "", ui.SubLine(ui.Bdi(ui.Short(200, r.Reason))))), ui.Labelled("tasks", ui.Texts(r.Held)),
				ui.Extra(Text(ui.Short(40, r.EngineVersion))), ui.Wide(replicaMachine(l, r.Machine)),
			)
		}),
	))
}

func replicaMachine(l *ui.Layout, m *contract.ReplicaMachine) Node {
	if m == nil {
		return ui.None("fixed address")
	}
	return Group{
		Text(m.State + " "), l.Time(m.Since), If(m.RunID != "", Group{ui.Space(), l.A(ui.RunPath(m.RunID), Text(m.RunID))}),
		If(m.Failures != 0, ui.SubLine(ui.Texts("failed ", m.Failures, " times"), If(!m.RetryAt.IsZero(), Group{Text(", next run "), l.Time(m.RetryAt)}))),
		ui.With(m.LastError, func(e *contract.PoolError) Node { return ui.SubLine(ui.Bdi(ui.Short(200, e.Message))) }),
	}
}

func (d poolData) machines() Node {
	h := d.Health
	warm := ui.Quiet(Text("The pool keeps none."))
	if w := d.Warm; w != nil {
		warm = Dl(
			ui.Term("Ready", ui.Texts(h.WarmMachines.Ready)), ui.Term("In creation", ui.Texts(h.WarmMachines.Creating)),
			ui.Term("Of runs", ui.Texts(h.WarmMachines.Claimed)), ui.Term("Ending", ui.Texts(h.WarmMachines.Ending)),
			ui.Term(
				"Kept", ui.Texts(w.Min, " to ", w.Max), If(w.Image != "", ui.Texts(" of ", ui.Short(80, w.Image))),
				If(w.AheadSeconds != 0, ui.Texts(", ", w.AheadSeconds, " s ahead of firings")),
			),
		)
	}
	return ui.Card(
		"machines", "Machines",
		Dl(
			ui.Term("Starting", ui.Texts(h.MachineStates.Starting)), ui.Term("Running", ui.Texts(h.MachineStates.Running)),
			ui.Term("Ending", ui.Texts(h.MachineStates.Ending)),
		),
		H2(Text("Warm machines")), warm,
	)
}

func (d poolData) settings(l *ui.Layout) Node {
	if d.Settings == nil && len(d.Fallback) == 0 {
		return nil
	}
	setting := func(name, value string) Node { return If(value != "", ui.Term(name, Text(ui.Visible(value)))) }
	return ui.Card("settings", "Settings", Dl(
		ui.With(d.Settings, func(s *contract.PoolSettings) Node {
			return Group{
				setting("Apps", strings.Join(s.Apps, ", ")), setting("Regions", strings.Join(s.Regions, ", ")), setting("Cluster", s.Cluster),
				setting("Namespace", s.Namespace), setting("Socket", s.Socket), setting("Network", s.Network),
			}
		}),
		Map(d.Fallback, func(f contract.PoolFallback) Node {
			return ui.Term("Fallback", l.A(ui.PoolPath(f.Pool), Text(f.Pool)), Text(" on "+strings.Join(f.On, ", ")))
		}),
	))
}

// change returns the forms that change the pool.
func (d poolData) change(l *ui.Layout) Node {
	number := func(name, field string, children ...Node) Node {
		return Label(ui.FieldName(name), Input(Type("number"), Name(field), Min("0"), Group(children)))
	}
	return ui.Card(
		"change", "Change",
		l.Post(
			ui.PoolPath(d.ID)+"/limits",
			Div(
				Class("fields"), If(d.Engine == nil, number("Slots", "limit", ui.Attribute("value", d.Limit))),
				number("Queue limit", "queueLimit", ui.Attribute("value", d.QueueLimit)),
			),
			P(Class("row"), Button(Text("Set limits")), ui.Space(), Span(Class("quiet"), Text("0 is no limit."))),
		),
		l.Post(
			ui.PoolPath(d.ID)+"/drain",
			Div(Class("fields"), number("Stop workers after", "deadlineSeconds", Placeholder("never, or seconds"))),
			P(Class("row"), Button(Class("danger"), Text("Drain")), ui.Space(), Span(Class("quiet"), Text("Runs stay in the queue."))),
		),
		ui.With(d.Engine, func(e *contract.PoolEngine) Node {
			return l.Post(
				ui.PoolPath(d.ID)+"/reload",
				Div(
					Class("fields"), Label(ui.FieldName("Model"), Input(Name("model"), Placeholder(e.Model))),
					number("Wait for tasks", "deadlineSeconds", Max("25"), Placeholder("seconds")),
				),
				P(Class("row"), Button(Text("Reload"))),
			)
		}),
	)
}

func (d poolData) errors(l *ui.Layout) Node {
	if len(d.Health.Errors) == 0 {
		return nil
	}
	return ui.Block("errors", "Last failures of the platform", ui.Scrolled(
		ui.Headings(ui.Columns("Code"), ui.NumberColumns("Times"), ui.Columns("Last", "Message")),
		Map(d.Health.Errors, func(e contract.PoolErrorGroup) Node {
			return Tr(Td(ui.Mono(ui.Visible(e.Code))), ui.Num(ui.Texts(e.Count)), Td(l.Time(e.LastAt)), ui.Wide(ui.Bdi(ui.Short(400, e.Message))))
		}),
	))
}
