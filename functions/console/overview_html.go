package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d overviewData) content(l *layout) Node {
	return Group{
		head(Text("Overview"), l.presets("Time", d.Spans)),
		Div(ID("health"), flag("data-part"), d.banner(l)),
		Div(ID("partial"), flag("data-part"), d.partial(l)),
		with(d.Chart, func(h *histogram) Node { return d.chart(l, h) }),
		Div(
			Class("cards wide"), ID("panels"), flag("data-part"),
			d.causes(l), d.waiting(l), d.flaky(l), d.slow(l), d.pools(l), d.next(l), d.hooks(l), d.newest(l), d.events(l),
		),
	}
}

// banner returns whether anything is wrong, since when and where.
func (d overviewData) banner(l *layout) Node {
	switch h := d.Health; {
	case h.Failed > 0:
		return P(Class("banner bad"), icon("cross"), Span(
			B(text(h.Failed, choose(h.Failed == 1, " failure", " failures"))), Text(" since "), l.time(h.Since),
			Text(choose(len(d.Causes) > 1, ", mostly ", ", all of ")), bdi(short(60, h.Where)),
		))
	case d.Activity.Runs.Created > 0:
		return P(Class("banner good"), icon("check"), Span(
			B(Text("Healthy")), text(": no failure among ", d.Activity.Runs.Created, " runs since "), l.time(d.Activity.Since),
		))
	}
	return P(
		Class("banner"), Span(Text("No run in this time. Start one:")), space(),
		copied("sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive"),
	)
}

// chart returns the runs by time, as a picture and as a table.
func (d overviewData) chart(l *layout, h *histogram) Node {
	key := func(class, word string) Node { return Span(Class("key "+class), Text(word)) }
	return section("chart", "Runs by time of creation", ID("chart"), flag("data-part"), Div(
		Class("card"),
		SVG(
			Class("histogram"), attr("viewBox", "0 0 ", h.Width, " ", h.Height), Role("group"), Aria("label", "Runs by time and state; each column is a link"),
			El("line", Class("grid"), attr("x1", "0"), attr("x2", h.Width), attr("y1", h.Height), attr("y2", h.Height)),
			Map(h.Bars, func(c column) Node { return c.picture(l, h.Height) }),
		),
		P(
			Class("legend"), Span(l.time(h.From)),
			Span(
				Class("keys"), key("good", "completed"), space(), key("bad", "failed"), space(), key("run", "under way"), space(),
				key("off", "cancelled, skipped"),
			),
			Span(Text("now")),
		),
		Details(Summary(Text("As a table")), table(headings(th("From (UTC)"), thNum("Runs"), th("States")), Map(h.Bars, func(c column) Node {
			return If(c.Total > 0, Tr(Td(l.a(c.Path, Text(c.From.Format("2006-01-02 15:04")))), num(text(c.Total)), Td(Text(c.Name()))))
		}))),
	))
}

// partial says which runs the figures lack.
func (d overviewData) partial(l *layout) Node {
	a := d.Activity
	var limits Group
	if a.CountedSince.After(a.Since) {
		limits = append(limits, Text(" since "), l.time(a.CountedSince))
	}
	if !a.Complete && a.CountedUntil.Before(l.Now) {
		limits = append(limits, Text(" until "), l.time(a.CountedUntil))
	}
	return Group{
		If(!a.Complete, P(Class("quiet"), Text("Partial figures: they count the events"), limits, Text("."))),
		If(!a.GroupsComplete, quiet(Text("There are more jobs or causes of failure than the tables below can count. The picture has all runs."))),
	}
}

func (c column) picture(l *layout, height int) Node {
	if c.Total == 0 {
		return nil
	}
	rect := func(class string, y, h any) Node {
		return El("rect", Class(class), attr("x", c.X), attr("y", y), attr("width", c.W), attr("height", h))
	}
	return l.a(
		c.Path, Aria("label", c.Name()), El("title", Text(c.Name())), rect("back", 0, height),
		Map(c.Parts, func(p columnPart) Node { return rect(p.Class, p.Y, p.H) }),
	)
}

// panel returns a table with a frame and a title. It is empty for no rows.
func panel[T any](id, title string, headings Node, rows []T, row func(T) Node) Node {
	if len(rows) == 0 {
		return nil
	}
	return card(id, title, table(headings, Map(rows, row)))
}

func (d overviewData) causes(l *layout) Node {
	return panel("causes", "Failures by cause", headings(th("Cause"), thNum("Runs"), th("Last")), d.Causes, func(c cause) Node {
		return Tr(
			wide(l.a(c.Path, bdi(short(50, workName(c.Kind, c.JobID)))), sub(code(c.Code), space(), bdi(short(90, c.LastMessage)))),
			num(text(c.Runs)), Td(l.a(runPath(c.LastRunID), l.time(c.LastAt))),
		)
	})
}

func (d overviewData) waiting(l *layout) Node {
	return panel("waiting", "Waiting", headings(th("For"), thNum("Runs"), th("Oldest")), d.Waiting, func(w waiting) Node {
		return Tr(
			Td(choose[Node](w.Pool != "", l.a(poolPath(w.Pool), Text("a slot of pool "+w.Pool)), Text("admission"))),
			num(text(w.Count, choose(w.More, "+", ""))),
			wide(l.a(runPath(w.Oldest.RunID), bdi(short(40, w.Oldest.What))), sub(l.time(w.Oldest.CreatedAt))),
		)
	})
}

func (d overviewData) flaky(l *layout) Node {
	return panel("flaky", "Flakiest", headings(th("Work"), thNum("Runs", "Failed", "First attempt failed")), d.Flaky, func(w contract.ActivityWork) Node {
		return Tr(d.work(l, w), num(text(w.Runs)), num(text(w.Failed)), num(text(w.FirstAttemptFailed*100/w.Runs, " %")))
	})
}

func (d overviewData) slow(l *layout) Node {
	return panel("slow", "Slowest", headings(th("Work"), thNum("Runs", "p50", "p95")), d.Slow, func(w contract.ActivityWork) Node {
		return Tr(d.work(l, w), num(text(w.Runs)), num(Text(seconds(w.P50Seconds))), num(Text(seconds(w.P95Seconds))))
	})
}

func (d overviewData) work(l *layout, w contract.ActivityWork) Node {
	return wide(l.a(address("runs", workQuery(d.Activity, w.Kind, w.JobID)), bdi(short(50, workName(w.Kind, w.JobID)))))
}

func (d overviewData) pools(l *layout) Node {
	return panel("pools", "Pools", headings(th("Pool"), thNum("In use", "Limit", "Queued")), d.Pools, func(p contract.Pool) Node {
		limit := "–"
		if p.Limit != 0 {
			limit = joined(p.Limit)
		}
		return Tr(
			Td(l.a(poolPath(p.ID), Text(p.ID)), If(p.Draining, Group{space(), badge("retry", "stop", "draining")})),
			num(text(p.Held)), num(Text(limit)), num(text(p.Queued)),
		)
	})
}

func (d overviewData) next(l *layout) Node {
	return panel("next", "Next firings", headings(th("Job", "Fires")), d.Next, func(j contract.JobSummary) Node {
		return Tr(
			wide(l.a(jobPath(j.ID), Text(j.ID)), sub(code(visible(j.ScheduleText())), Text(" "+visible(j.TimeZone)))),
			Td(l.time(j.NextAt)),
		)
	})
}

func (d overviewData) hooks(l *layout) Node {
	if len(d.Hooks) == 0 {
		return nil
	}
	return section("hooks", "Webhooks in trouble", Class("card bad"), table(headings(th("Webhook", "State", "Last success")), Map(d.Hooks, func(w webhookRow) Node {
		return Tr(
			wide(l.a(webhookPath(w.ID), bdi(short(80, w.URL))), sub(bdi(short(120, w.DisabledReason)))), Td(w.Look.badge()),
			Td(l.time(w.Progress.LastSuccessAt)),
		)
	})))
}

func (d overviewData) newest(l *layout) Node {
	return panel("newest", "Newest runs", headings(th("State", "What", "Created")), d.Newest, func(r runRow) Node {
		return Tr(
			Td(stateOf(r.State, r.Skipped).badge()), wide(l.a(runPath(r.RunID), bdi(short(50, r.What)))), Td(l.time(r.CreatedAt)),
		)
	})
}

func (d overviewData) events(l *layout) Node {
	return panel("events", "Newest events", headings(th("Type", "About", "Time")), d.Events, func(e eventRow) Node {
		return Tr(
			Td(l.a(eventPath(e.Cursor.String()), Text(choose(e.Unreadable, "unreadable", string(e.Event.EventType))))), wide(bdi(short(50, e.About))),
			Td(l.time(e.Event.OccurredAt)),
		)
	})
}
