package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/jobs"
	"github.com/sortie-dev/sortie/functions/console/ui"
)

// content returns the lineage of a run, as a picture with links and as a table.
func (g *lineage) content(l *ui.Layout) Node {
	return ui.Block("lineage", "Lineage", Div(
		Class("card"),
		Div(Class("scroll"), SVG(
			Class("lineage"), ui.Attribute("viewBox", "0 0 ", g.Width, " ", g.Height), ui.Attribute("width", g.Width), ui.Attribute("height", g.Height),
			Role("group"), Aria("label", "Runs that led to this one, and runs that it started"),
			Map(g.Edges, func(e lineageEdge) Node {
				return El("path", Class("line"), ui.Attribute("d", "M", e.X1, " ", e.Y1, "C", e.X1+25, " ", e.Y1, " ", e.X2-25, " ", e.Y2, " ", e.X2, " ", e.Y2))
			}),
			Map(g.Nodes, func(n lineageNode) Node { return n.picture(l) }),
		)),
		If(g.More > 0, ui.Quiet(ui.Texts(g.More, " further runs were triggered."))),
		Details(Summary(Text("As a table")), ui.Grid(ui.Headings(ui.Columns("Run", "What", "State", "Relation")), Map(g.Nodes, func(n lineageNode) Node {
			return Tr(
				ui.Wide(l.A(ui.RunPath(n.RunID), Text(n.RunID))), ui.Wide(ui.Bdi(ui.Short(120, n.What))), Td(If(n.State.Word != "", n.State.Badge())),
				Td(Text(ui.Choose(n.Relation == "", "this run", n.Relation))),
			)
		}))),
	))
}

func (n lineageNode) picture(l *ui.Layout) Node {
	shape := Group{
		El("rect", ui.Attribute("x", n.X), ui.Attribute("y", n.Y), ui.Attribute("width", nodeWidth), ui.Attribute("height", nodeHeight), ui.Attribute("rx", 6)),
		El("text", ui.Attribute("x", n.X+10), ui.Attribute("y", n.Y+17), Text(ui.Short(22, n.What))), ui.Space(),
		El("text", Class("quiet"), ui.Attribute("x", n.X+10), ui.Attribute("y", n.Y+32), Text(ui.Short(26, ui.Choose(n.Relation == "", "this run", n.State.Word)))),
		El("title", Text(ui.Short(200, n.RunID))),
	}
	if n.Relation == "" {
		return El("g", Class("here"), shape)
	}
	return l.A(ui.RunPath(n.RunID), shape)
}

// definition returns how the definition that the run executed differs from that of today.
func (d runData) definition(l *ui.Layout) Node {
	return ui.With(d.Definition, func(n *definition) Node {
		executed := l.A(ui.JobPath(d.JobID)+ui.Joined("/document?version=", d.JobVersion), ui.Texts("version ", d.JobVersion))
		switch {
		case n.Deleted:
			return ui.Block("definition", "Definition", P(ui.Texts("The run executed version ", d.JobVersion, " of the job, which is deleted.")))
		case n.Current == d.JobVersion:
			return ui.Block("definition", "Definition", P(Text("The run executed "), executed, Text(", which is still the current one.")))
		case n.Gone:
			return ui.Block("definition", "Definition", P(ui.Texts("The run executed version ", d.JobVersion, ", which is no longer stored. Today's is "), l.A(ui.JobPath(d.JobID)+"/document", ui.Texts("version ", n.Current)), Text(".")))
		}
		return ui.Block(
			"definition", "Definition",
			P(Text("The run executed "), executed, Text(". Today's is "), l.A(ui.JobPath(d.JobID)+"/document", ui.Texts("version ", n.Current)), Text(", with these changes:")),
			jobs.ChangesTable(n.Changes),
		)
	})
}
