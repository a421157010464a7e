package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// content returns the lineage of a run, as a picture with links and as a table.
func (g *lineage) content(l *layout) Node {
	return section("lineage", "Lineage", Div(
		Class("card"),
		Div(Class("scroll"), SVG(
			Class("lineage"), attr("viewBox", "0 0 ", g.Width, " ", g.Height), attr("width", g.Width), attr("height", g.Height),
			Role("group"), Aria("label", "Runs that led to this one, and runs that it started"),
			Map(g.Edges, func(e lineageEdge) Node {
				return El("path", Class("line"), attr("d", "M", e.X1, " ", e.Y1, "C", e.X1+25, " ", e.Y1, " ", e.X2-25, " ", e.Y2, " ", e.X2, " ", e.Y2))
			}),
			Map(g.Nodes, func(n lineageNode) Node { return n.picture(l) }),
		)),
		If(g.More > 0, quiet(text(g.More, " further runs were triggered."))),
		Details(Summary(Text("As a table")), table(headings(th("Run", "What", "State", "Relation")), Map(g.Nodes, func(n lineageNode) Node {
			return Tr(
				wide(l.a(runPath(n.RunID), Text(n.RunID))), wide(bdi(short(120, n.What))), Td(If(n.State.Word != "", n.State.badge())),
				Td(Text(choose(n.Relation == "", "this run", n.Relation))),
			)
		}))),
	))
}

func (n lineageNode) picture(l *layout) Node {
	shape := Group{
		El("rect", attr("x", n.X), attr("y", n.Y), attr("width", nodeWidth), attr("height", nodeHeight), attr("rx", 6)),
		El("text", attr("x", n.X+10), attr("y", n.Y+17), Text(short(22, n.What))),
		El("text", Class("quiet"), attr("x", n.X+10), attr("y", n.Y+32), Text(short(26, choose(n.Relation == "", "this run", n.State.Word)))),
		El("title", Text(short(200, n.RunID))),
	}
	if n.Relation == "" {
		return El("g", Class("here"), shape)
	}
	return l.a(runPath(n.RunID), Aria("label", joined(short(60, n.What), ", ", n.Relation)), shape)
}

// definition returns how the definition that the run executed differs from that of today.
func (d runData) definition(l *layout) Node {
	return with(d.Definition, func(n *definition) Node {
		executed := l.a(jobPath(d.JobID)+joined("/document?version=", d.JobVersion), text("version ", d.JobVersion))
		switch {
		case n.Deleted:
			return section("definition", "Definition", P(text("The run executed version ", d.JobVersion, " of the job, which is deleted.")))
		case n.Current == d.JobVersion:
			return section("definition", "Definition", P(Text("The run executed "), executed, Text(", which is still the current one.")))
		case n.Gone:
			return section("definition", "Definition", P(text("The run executed version ", d.JobVersion, ", which is no longer stored. Today's is "), l.a(jobPath(d.JobID)+"/document", text("version ", n.Current)), Text(".")))
		}
		return section(
			"definition", "Definition",
			P(Text("The run executed "), executed, Text(". Today's is "), l.a(jobPath(d.JobID)+"/document", text("version ", n.Current)), Text(", with these changes:")),
			changesTable(n.Changes),
		)
	})
}
