package graph

import (
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Content returns the picture and the table. It is nil without a graph.
func (p *Drawing) Content(l *ui.Layout) Node {
	if p == nil {
		return nil
	}
	return ui.Block("graph", "Dependencies", Div(
		Class("card"),
		Div(Class("scroll"), SVG(
			Class("lineage graph"), ui.Attribute("viewBox", "0 0 ", p.Width, " ", p.Height), ui.Attribute("width", p.Width), ui.Attribute("height", p.Height),
			Role("group"), Aria("label", "Jobs that come after each other; the table below has the same"),
			Map(p.edges, edge.picture), Map(p.nodes, func(n node) Node { return p.picture(l, n) }),
		)),
		Details(Summary(Text("As a table")), ui.Listing(
			ui.Headings(ui.Columns("Job"), If(p.runs, ui.Columns("State", "Run")), ui.Columns("Comes after", "Before")),
			Map(p.nodes, func(n node) Node { return p.row(l, n) }),
		)),
	))
}

func (e edge) picture() Node {
	class := "line"
	if e.when != "" {
		class += " other"
	}
	line := ui.Joined("M", e.points[0].X, " ", e.points[0].Y)
	for i := 1; i < len(e.points); i += 2 {
		from, to := e.points[i-1], e.points[i]
		middle := (from.X + to.X) / 2
		line += ui.Joined("C", middle, " ", from.Y, " ", middle, " ", to.Y, " ", to.X, " ", to.Y)
		if i+1 < len(e.points) {
			line += ui.Joined("H", e.points[i+1].X)
		}
	}
	start := e.points[0]
	return Group{
		El("path", Class(class), ui.Attribute("d", line)),
		If(e.when != "", El("text", Class("quiet"), ui.Attribute("x", start.X+6), ui.Attribute("y", start.Y-6+18*e.label), Text(e.when))),
	}
}

// state returns what the second line of a job says.
func (p *Drawing) state(n node) string {
	switch {
	case n.RunID != "":
		return n.Look.Word
	case p.runs:
		return "not started"
	case n.Paused:
		return "paused"
	}
	return n.Name
}

// path returns the page of the job's run, or of the job.
func (n node) path() string {
	if n.RunID != "" {
		return ui.RunPath(n.RunID)
	}
	return ui.JobPath(n.JobID)
}

func (p *Drawing) picture(l *ui.Layout, n node) Node {
	left := n.X + 10
	mark := Node(nil)
	if n.Look.Icon != "" {
		mark = El("use", Class("i "+n.Look.Class), ui.Relative("href", "#i-"+n.Look.Icon), ui.Attribute("x", left), ui.Attribute("y", n.Y+22), ui.Attribute("width", 12), ui.Attribute("height", 12))
		left += 17
	}
	shape := Group{
		El("rect", ui.Attribute("x", n.X), ui.Attribute("y", n.Y), ui.Attribute("width", width), ui.Attribute("height", height), ui.Attribute("rx", 6)),
		El("text", ui.Attribute("x", n.X+10), ui.Attribute("y", n.Y+17), Text(ui.Short(22, n.JobID))), ui.Space(),
		mark,
		El("text", Class("quiet"), ui.Attribute("x", left), ui.Attribute("y", n.Y+32), Text(ui.Short(22, p.state(n)))),
		El("title", Text(ui.Short(200, strings.TrimSpace(n.JobID+" "+n.Name)))),
	}
	if n.Here {
		return El("g", Class("here"), shape)
	}
	return l.A(n.path(), shape)
}

// row returns a job of the table.
func (p *Drawing) row(l *ui.Layout, n node) Node {
	after := ui.Commas(n.After, func(a contract.GraphAfter) Node {
		return Group{l.A(ui.JobPath(a.JobID), Text(ui.Short(60, a.JobID))), beside(condition(a.When))}
	})
	next := ui.Commas(n.Next, func(id string) Node { return l.A(ui.JobPath(id), Text(ui.Short(60, id))) })
	state := ui.None("not started")
	if n.RunID != "" {
		state = n.Look.Badge()
	}
	return Tr(
		ui.Wide(l.A(ui.JobPath(n.JobID), Text(ui.Short(60, n.JobID))), If(n.Here, ui.SubLine(Text("this job"))), If(n.Paused, ui.SubLine(Text("paused"))), If(n.Name != "", ui.SubLine(ui.Bdi(ui.Short(90, n.Name))))),
		If(p.runs, Group{Td(state), ui.Wide(If(n.RunID != "", l.A(ui.RunPath(n.RunID), Text(ui.Short(120, n.RunID)))))}),
		Td(Class("wide links"), after), Td(Class("wide links"), next),
	)
}

// beside returns a condition beside the name of a job.
func beside(condition string) Node {
	return If(condition != "", Text(" ("+condition+")"))
}
