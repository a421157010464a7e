package console

import (
	"cmp"
	"fmt"
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d poolData) content(l *layout) Node {
	return Group{
		P(Class("crumbs"), l.a("pools", Text("Pools")), Text(" /")),
		head(Text(d.ID), d.State.badge(), space(), If(l.May("admin"), actions(
			If(d.Draining, l.post(poolPath(d.ID)+"/resume", Button(Class("primary"), Text("Resume")))),
		))),
		d.facts(l), If(d.Draining, d.drain(l)), d.slots(l), d.queue(l), d.replicas(l),
		Div(Class("cards"), d.machines(), d.settings(l), If(l.May("admin"), d.change(l))),
		d.errors(l),
	}
}

func (d poolData) facts(l *layout) Node {
	m := d.Health.Metrics
	return Dl(
		Class("facts"), ID("p-facts"), flag("data-part"),
		fact("Slots", Text(d.Slots.Text+" "), If(d.Limit != 0, d.Slots.picture())),
		fact("Queued", text(d.Queued), If(d.QueueLimit != 0, text(" of ", d.QueueLimit))),
		If(d.Queued != 0, fact("Longest wait", Text(duration(d.LongestWait())))),
		with(d.Wait, waitFact), d.runsOn(),
		with(m.StartP50Seconds, func(half *float64) Node {
			var most float64
			if m.StartP99Seconds != nil {
				most = *m.StartP99Seconds
			}
			return fact("Starts", text(seconds(*half), " for half of ", m.MeasuredStarts, ", ", seconds(most), " for 99 of 100"))
		}),
		with(m.StartsPerSecond, func(rate *float64) Node {
			return fact("Permitted starts", Text(fmt.Sprintf("%.2g a second", *rate)), If(!m.NextStartAt.IsZero(), Group{Text(", next "), l.time(m.NextStartAt)}))
		}),
		If(d.Version != 0, fact("Version", text(d.Version, " "), Span(Class("quiet"), l.time(d.UpdatedAt), by(d.UpdatedBy)))),
	)
}

func waitFact(w *contract.PoolWait) Node {
	measured := "not measured"
	if w.Measured != 0 {
		measured = joined(w.Measured, " measured runs")
	}
	return fact(
		"A new run waits", text(seconds(w.P50Seconds), ", 9 of 10 up to ", seconds(w.P90Seconds), " "), Span(Class("quiet"), text("(", measured, ")")),
	)
}

func (d poolData) runsOn() Node {
	if e := d.Engine; e != nil {
		return fact("Engine", text(visible(e.Kind), " with ", visible(e.Model)))
	}
	return fact("Runner", Text(cmp.Or(d.Runner, "of the deployment")))
}

func (d poolData) drain(l *layout) Node {
	return section("drain", "The pool drains", Class("card wait"), P(
		Text("No run gets a slot until the pool is resumed."),
		with(d.Health.Drain, func(s *contract.PoolDrainState) Node {
			return Group{
				Text(" Phase: "), B(Text(s.Phase)), text(". ", s.Runs, " runs and ", s.WarmMachines, " warm machines remain."),
				If(!s.Deadline.IsZero(), Group{Text(" Workers are asked to stop "), l.time(s.Deadline), Text(".")}),
			}
		}),
	))
}

// slots returns the runs that hold slots.
func (d poolData) slots(l *layout) Node {
	part := Group{ID("p-slots"), flag("data-part")}
	held := d.Health.Remaining
	if len(held) == 0 {
		return section("slots", "Slots", part, quiet(Text("No run holds a slot.")))
	}
	return section(
		"slots", "Slots", part,
		listing(headings(th("State", "Held by", "Run", "Since")), Map(held, func(h contract.Holder) Node {
			job := none("no job")
			if h.JobID != "" {
				job = l.a(jobPath(h.JobID), Text(h.JobID))
			}
			return Tr(
				Data("run", h.RunID), Td(stateOf(h.State, false).badge(), If(h.Cancelling, sub(Text("asked to end")))), Td(job),
				wide(l.a(runPath(h.RunID), Text(h.RunID))), Td(Data("label", "since"), l.time(h.Since)),
			)
		})),
		If(d.Held > len(held), quiet(
			text("These are the first ", len(held), " of ", d.Held, ". "), l.a(d.runs("Running"), Text("All running runs")),
		)),
	)
}

// runs returns the address of the pool's runs in a state.
func (d poolData) runs(state string) string {
	return "runs?pool=" + queryValue(d.ID) + "&state=" + state
}

// queue returns the runs that wait for a slot, in their order.
func (d poolData) queue(l *layout) Node {
	part := Group{ID("p-queue"), flag("data-part")}
	if len(d.Queue) == 0 {
		return section("queue", "Queue", part, quiet(Text("No run waits.")))
	}
	return section(
		"queue", "Queue", part,
		listing(
			headings(thNum("Position"), th("What", "Priority", "Waits since", "Expected start")),
			Map(d.Queue, func(q queuedRun) Node { return q.row(l) }),
		),
		quiet(
			If(d.Queued > len(d.Queue), text(d.Queued, " runs wait. ")), l.a(d.runs("Pending"), Text("All waiting runs")),
		),
	)
}

func (q queuedRun) row(l *layout) Node {
	var detail Node
	switch {
	case q.Message != "":
		detail = sub(bdi(short(200, q.Message)))
	case q.Detail != "":
		detail = sub(bdi(short(90, q.Detail)))
	}
	expected := none("–")
	if e := q.Expected; e != nil {
		expected = Group{l.time(e.P50), sub(Text("9 of 10: "), l.time(e.P90))}
	}
	return Tr(
		Data("run", q.RunID), labelled("position", text(q.Position)), wide(l.a(runPath(q.RunID), bdi(short(80, q.What))), detail),
		extra(Text(cmp.Or(q.Priority, "normal"))), Td(Data("label", "since"), l.time(q.EnteredAt)), Td(Data("label", "starts"), expected),
	)
}

func (d poolData) replicas(l *layout) Node {
	if len(d.Health.Replicas) == 0 {
		return nil
	}
	return section("replicas", "Replicas", listing(
		headings(th("State", "Replica"), thNum("Tasks"), th("Version", "Machine")),
		Map(d.Health.Replicas, func(r contract.ReplicaHealth) Node {
			state := badge("bad", "cross", "Down")
			switch {
			case r.Ready:
				state = badge("good", "check", "Ready")
			case r.Live:
				state = badge("wait", "clock", "Not ready")
			}
			return Tr(
				Td(state), wide(Text(visible(r.ID)), If(r.Reason != "", sub(bdi(short(200, r.Reason))))), labelled("tasks", text(r.Held)),
				extra(Text(short(40, r.EngineVersion))), wide(replicaMachine(l, r.Machine)),
			)
		}),
	))
}

func replicaMachine(l *layout, m *contract.ReplicaMachine) Node {
	if m == nil {
		return none("fixed address")
	}
	return Group{
		Text(m.State + " "), l.time(m.Since), If(m.RunID != "", Group{space(), l.a(runPath(m.RunID), Text(m.RunID))}),
		If(m.Failures != 0, sub(text("failed ", m.Failures, " times"), If(!m.RetryAt.IsZero(), Group{Text(", next run "), l.time(m.RetryAt)}))),
		with(m.LastError, func(e *contract.PoolError) Node { return sub(bdi(short(200, e.Message))) }),
	}
}

func (d poolData) machines() Node {
	h := d.Health
	warm := quiet(Text("The pool keeps none."))
	if w := d.Warm; w != nil {
		warm = Dl(
			term("Ready", text(h.WarmMachines.Ready)), term("In creation", text(h.WarmMachines.Creating)),
			term("Of runs", text(h.WarmMachines.Claimed)), term("Ending", text(h.WarmMachines.Ending)),
			term(
				"Kept", text(w.Min, " to ", w.Max), If(w.Image != "", text(" of ", short(80, w.Image))),
				If(w.AheadSeconds != 0, text(", ", w.AheadSeconds, " s ahead of firings")),
			),
		)
	}
	return card(
		"machines", "Machines",
		Dl(
			term("Starting", text(h.MachineStates.Starting)), term("Running", text(h.MachineStates.Running)),
			term("Ending", text(h.MachineStates.Ending)),
		),
		H2(Text("Warm machines")), warm,
	)
}

func (d poolData) settings(l *layout) Node {
	if d.Settings == nil && len(d.Fallback) == 0 {
		return nil
	}
	setting := func(name, value string) Node { return If(value != "", term(name, Text(visible(value)))) }
	return card("settings", "Settings", Dl(
		with(d.Settings, func(s *contract.PoolSettings) Node {
			return Group{
				setting("Apps", strings.Join(s.Apps, ", ")), setting("Regions", strings.Join(s.Regions, ", ")), setting("Cluster", s.Cluster),
				setting("Namespace", s.Namespace), setting("Socket", s.Socket), setting("Network", s.Network),
			}
		}),
		Map(d.Fallback, func(f contract.PoolFallback) Node {
			return term("Fallback", l.a(poolPath(f.Pool), Text(f.Pool)), Text(" on "+strings.Join(f.On, ", ")))
		}),
	))
}

// change returns the forms that change the pool.
func (d poolData) change(l *layout) Node {
	number := func(name, field string, children ...Node) Node {
		return Label(label(name), Input(Type("number"), Name(field), Min("0"), Group(children)))
	}
	return card(
		"change", "Change",
		l.post(
			poolPath(d.ID)+"/limits",
			Div(
				Class("fields"), If(d.Engine == nil, number("Slots", "limit", attr("value", d.Limit))),
				number("Queue limit", "queueLimit", attr("value", d.QueueLimit)),
			),
			P(Class("row"), Button(Text("Set limits")), space(), Span(Class("quiet"), Text("0 is no limit."))),
		),
		l.post(
			poolPath(d.ID)+"/drain",
			Div(Class("fields"), number("Stop workers after", "deadlineSeconds", Placeholder("never, or seconds"))),
			P(Class("row"), Button(Class("danger"), Text("Drain")), space(), Span(Class("quiet"), Text("Runs stay in the queue."))),
		),
		with(d.Engine, func(e *contract.PoolEngine) Node {
			return l.post(
				poolPath(d.ID)+"/reload",
				Div(
					Class("fields"), Label(label("Model"), Input(Name("model"), Placeholder(e.Model))),
					number("Wait for tasks", "deadlineSeconds", Max("25"), Placeholder("seconds")),
				),
				P(Class("row"), Button(Text("Reload"))),
			)
		}),
	)
}

func (d poolData) errors(l *layout) Node {
	if len(d.Health.Errors) == 0 {
		return nil
	}
	return section("errors", "Last failures of the platform", scrolled(
		headings(th("Code"), thNum("Times"), th("Last", "Message")),
		Map(d.Health.Errors, func(e contract.PoolErrorGroup) Node {
			return Tr(Td(code(visible(e.Code))), num(text(e.Count)), Td(l.time(e.LastAt)), wide(bdi(short(400, e.Message))))
		}),
	))
}
