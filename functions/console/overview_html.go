package console

import (
	"fmt"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/functions/console/webhooks"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d overviewData) content(l *ui.Layout) Node {
	return Group{
		ui.Top(Text("Overview"), l.Presets("Time", d.Spans)),
		Div(ID("health"), ui.Flag("data-part"), d.banner(l)),
		Div(ID("partial"), ui.Flag("data-part"), d.partial(l)),
		ui.With(d.Chart, func(h *histogram) Node { return d.chart(l, h) }),
		Div(
			Class("cards wide"), ID("panels"), ui.Flag("data-part"),
			d.causes(l), d.waiting(l), d.flaky(l), d.slow(l), d.pools(l), d.next(l), d.hooks(l), d.newest(l), d.events(l),
		),
	}
}

// banner returns whether anything is wrong, since when and where.
func (d overviewData) banner(l *ui.Layout) Node {
	switch h := d.Health; {
	case h.Failed > 0:
		return P(Class("banner bad"), ui.Icon("cross"), Span(
			B(ui.Texts(h.Failed, ui.Choose(h.Failed == 1, " failure", " failures"))), Text(" since "), l.Time(h.Since),
			Text(ui.Choose(len(d.Causes) > 1, ", mostly ", ", all of ")), ui.Bdi(ui.Short(60, h.Where)),
		))
	case d.Activity.Runs.Created > 0:
		return P(Class("banner good"), ui.Icon("check"), Span(
			B(Text("Healthy")), ui.Texts(": no failure among ", d.Activity.Runs.Created, " runs", childrenOf(d.Activity.Runs), " since "), l.Time(d.Activity.Since),
		))
	}
	return P(
		Class("banner"), Span(Text("No run in this time. Start one:")), ui.Space(),
		ui.Copied("sortie export mods --pi 01K9XVBAQZF9EHDRXGBEADTZYY --recursive"),
	)
}

// chart returns the runs by time, as a picture and as a table.
func (d overviewData) chart(l *ui.Layout, h *histogram) Node {
	key := func(class, word string) Node { return Span(Class("key "+class), Text(word)) }
	return ui.Block("chart", "Runs by time of creation", ID("chart"), ui.Flag("data-part"), Div(
		Class("card"),
		SVG(
			Class("histogram"), ui.Attribute("viewBox", "0 0 ", h.Width, " ", h.Height), Role("group"), Aria("label", "Runs by time and state; each column is a link"),
			El("line", Class("grid"), ui.Attribute("x1", "0"), ui.Attribute("x2", h.Width), ui.Attribute("y1", h.Height), ui.Attribute("y2", h.Height)),
			Map(h.Bars, func(c column) Node { return c.picture(l, h.Height) }),
		),
		P(
			Class("legend"), Span(l.Time(h.From)),
			Span(
				Class("keys"), key("good", "completed"), ui.Space(), key("bad", "failed"), ui.Space(), key("run", "under way"), ui.Space(),
				key("off", "cancelled, skipped"),
			),
			Span(Text("now")),
		),
		Details(Summary(Text("As a table")), ui.Grid(ui.Headings(ui.Columns("From (UTC)"), ui.NumberColumns("Runs"), ui.Columns("States")), Map(h.Bars, func(c column) Node {
			return If(c.Total > 0, Tr(Td(l.A(c.Path, Text(c.From.Format("2006-01-02 15:04")))), ui.Num(ui.Texts(c.Total)), Td(Text(c.Name()))))
		}))),
	))
}

// partial says which runs the figures lack.
func (d overviewData) partial(l *ui.Layout) Node {
	a := d.Activity
	var limits Group
	if a.CountedSince.After(a.Since) {
		limits = append(limits, Text(" since "), l.Time(a.CountedSince))
	}
	if !a.Complete && a.CountedUntil.Before(l.Now) {
		limits = append(limits, Text(" until "), l.Time(a.CountedUntil))
	}
	return Group{
		If(!a.Complete, P(Class("quiet"), Text("Partial figures: they count the events"), limits, Text("."))),
		If(!a.GroupsComplete, ui.Quiet(Text("There are more jobs or causes of failure than the tables below can count. The picture has all runs."))),
	}
}

func (c column) picture(l *ui.Layout, height int) Node {
	if c.Total == 0 {
		return nil
	}
	rect := func(class string, y, h any) Node {
		return El("rect", Class(class), ui.Attribute("x", c.X), ui.Attribute("y", y), ui.Attribute("width", c.W), ui.Attribute("height", h))
	}
	return l.A(
		c.Path, Aria("label", c.Name()), El("title", Text(c.Name())), rect("back", 0, height),
		Map(c.Parts, func(p columnPart) Node { return rect(p.Class, p.Y, p.H) }),
	)
}

func (d overviewData) causes(l *ui.Layout) Node {
	return ui.Panel("causes", "Failures by cause", ui.Headings(ui.Columns("Cause"), ui.NumberColumns("Runs"), ui.Columns("Last")), d.Causes, func(c cause) Node {
		return Tr(
			ui.Wide(l.A(c.Path, ui.Bdi(ui.Short(50, workName(c.Kind, c.JobID)))), ui.SubLine(ui.Mono(c.Code), ui.Space(), ui.Bdi(ui.Short(90, c.LastMessage)))),
			ui.Num(ui.Texts(c.Runs)), Td(l.A(ui.RunPath(c.LastRunID), l.Time(c.LastAt))),
		)
	})
}

func (d overviewData) waiting(l *ui.Layout) Node {
	return ui.Panel("waiting", "Waiting", ui.Headings(ui.Columns("For"), ui.NumberColumns("Runs"), ui.Columns("Oldest")), d.Waiting, func(w waiting) Node {
		return Tr(
			Td(ui.Choose[Node](w.Pool != "", l.A(ui.PoolPath(w.Pool), Text("a slot of pool "+w.Pool)), Text("admission"))),
			ui.Num(ui.Texts(w.Count, ui.Choose(w.More, "+", ""))),
			ui.Wide(l.A(ui.RunPath(w.Oldest.RunID), ui.Bdi(ui.Short(40, w.Oldest.What))), ui.SubLine(l.Time(w.Oldest.CreatedAt))),
		)
	})
}

func (d overviewData) flaky(l *ui.Layout) Node {
	return ui.Panel("flaky", "Flakiest", ui.Headings(ui.Columns("Work"), ui.NumberColumns("Runs", "Failed", "First attempt failed")), d.Flaky, func(w contract.ActivityWork) Node {
		return Tr(d.work(l, w), ui.Num(ui.Texts(w.Runs)), ui.Num(ui.Texts(w.Failed)), ui.Num(ui.Texts(w.FirstAttemptFailed*100/w.Runs, " %")))
	})
}

func (d overviewData) slow(l *ui.Layout) Node {
	return ui.Panel("slow", "Slowest", ui.Headings(ui.Columns("Work"), ui.NumberColumns("Runs", "p50", "p95")), d.Slow, func(w contract.ActivityWork) Node {
		return Tr(d.work(l, w), ui.Num(ui.Texts(w.Runs)), ui.Num(Text(ui.Seconds(w.P50Seconds))), ui.Num(Text(ui.Seconds(w.P95Seconds))))
	})
}

func (d overviewData) work(l *ui.Layout, w contract.ActivityWork) Node {
	return ui.Wide(l.A(ui.WithQuery("runs", workQuery(d.Activity, w.Kind, w.JobID)), ui.Bdi(ui.Short(50, workName(w.Kind, w.JobID)))))
}

func (d overviewData) pools(l *ui.Layout) Node {
	return ui.Panel("pools", "Pools", ui.Headings(ui.Columns("Pool"), ui.NumberColumns("In use", "Limit", "Queued")), d.Pools, func(p contract.Pool) Node {
		limit := "–"
		if p.Limit != 0 {
			limit = ui.Joined(p.Limit)
		}
		return Tr(
			Td(l.A(ui.PoolPath(p.ID), Text(p.ID)), If(p.Draining, Group{ui.Space(), ui.Badge("retry", "stop", "draining")})),
			ui.Num(ui.Texts(p.Held)), ui.Num(Text(limit)), ui.Num(ui.Texts(p.Queued)),
		)
	})
}

func (d overviewData) next(l *ui.Layout) Node {
	return ui.Panel("next", "Next firings", ui.Headings(ui.Columns("Job", "Fires")), d.Next, func(j contract.JobSummary) Node {
		return Tr(
			ui.Wide(l.A(ui.JobPath(j.ID), Text(j.ID)), ui.SubLine(ui.Mono(ui.Visible(j.ScheduleText())), Text(" "+ui.Visible(j.TimeZone)))),
			Td(l.Time(j.NextAt)),
		)
	})
}

func (d overviewData) hooks(l *ui.Layout) Node {
	if len(d.Hooks) == 0 {
		return nil
	}
	return ui.Block("hooks", "Webhooks in trouble", Class("card bad"), ui.Grid(ui.Headings(ui.Columns("Webhook", "State", "Last success")), Map(d.Hooks, func(w webhooks.Row) Node {
		return Tr(
			ui.Wide(l.A(ui.WebhookPath(w.ID), ui.Bdi(ui.Short(80, w.URL))), ui.SubLine(ui.Bdi(ui.Short(120, w.DisabledReason)))), Td(w.Look.Badge()),
			Td(l.Time(w.Progress.LastSuccessAt)),
		)
	})))
}

func (d overviewData) newest(l *ui.Layout) Node {
	return ui.Panel("newest", "Newest runs", ui.Headings(ui.Columns("State", "What", "Created")), d.Newest, func(r page.RunRow) Node {
		return Tr(
			Td(ui.StateOf(r.State, r.Skipped).Badge()), ui.Wide(l.A(ui.RunPath(r.RunID), ui.Bdi(ui.Short(50, r.What)))), Td(l.Time(r.CreatedAt)),
		)
	})
}

func (d overviewData) events(l *ui.Layout) Node {
	return ui.Panel("events", "Newest events", ui.Headings(ui.Columns("Type", "About", "Time")), d.Events, func(e eventRow) Node {
		return Tr(
			Td(l.A(ui.EventPath(e.Cursor.String()), Text(ui.Choose(e.Unreadable, "unreadable", string(e.Event.EventType))))), ui.Wide(ui.Bdi(ui.Short(50, e.About))),
			Td(l.Time(e.Event.OccurredAt)),
		)
	})
}

// childrenOf says how many children the runs have.
func childrenOf(runs contract.ActivityCounts) string {
	switch runs.Children {
	case 0:
		return ""
	case 1:
		return " and a child"
	}
	return fmt.Sprintf(" and %d children", runs.Children)
}
