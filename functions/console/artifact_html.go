package console

import (
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d artifactsData) content(l *ui.Layout) Node {
	filter := func(label, name string) Node {
		return ui.Field(label, Name(name), Value(ui.Visible(d.Filter.Get(name))))
	}
	list := Node(Group{ui.Listing(artifactHeadings, Map(d.Artifacts, func(a contract.ArtifactSummary) Node { return artifactRow(l, a) })), l.Pager(d.Pager)})
	if len(d.Artifacts) == 0 {
		list = Group{ui.Empty(ui.Choose(len(d.Chips) > 0, "No artifact of this part of the list matches.", "There are no artifacts yet. Store one from a file:"), ui.Choose(len(d.Chips) > 0, "", "sortie artifacts put note note.txt")), l.Pager(d.Pager)}
	}
	return Group{
		ui.Top(Text("Artifacts")),
		l.Get("artifacts", Class("filters"), Role("search"), Aria("label", "Filter the artifacts"), filter("Kind", "kind"), filter("Tag", "tag"), filter("Parent", "parent"), ui.Field("Id", Name("id")), Button(Text("Filter"))),
		l.Chips(d.Chips), list,
	}
}

var artifactHeadings = ui.Headings(ui.Columns("Artifact", "Kind", "Type"), ui.NumberColumns("Size"), ui.Columns("Created", "Tags"))

func artifactRow(l *ui.Layout, a contract.ArtifactSummary) Node {
	return Tr(
		Td(l.A(ui.ArtifactPath(a.ID), ui.Mono(ui.Short(16, a.ID)))), ui.Wide(Text(ui.Visible(a.Kind))), ui.Extra(Text(ui.Short(60, a.MediaType))), ui.Labelled("size", Text(ui.Size(a.Size))),
		Td(Data("label", "created"), l.Time(createdAt(a))), ui.Wide(ui.Commas(a.Tags, func(tag string) Node { return l.A("artifacts?tag="+ui.QueryValue(tag), ui.Bdi(ui.Short(60, tag))) })),
	)
}

func (d artifactData) content(l *ui.Layout) Node {
	shown := ui.Quiet(Text("There is no preview of this type."))
	if d.Preview != nil {
		shown = d.Preview.content(l.Root+ui.ArtifactPath(d.ID)+"/picture", d.Kind)
	}
	return Group{
		P(Class("crumbs"), l.A("artifacts", Text("Artifacts")), Text(" /")),
		ui.Top(Text("Artifact "+ui.Short(12, d.ID)), Span(Class("quiet"), Text(ui.Visible(d.Kind)))),
		ui.Facts(
			ui.Fact("Digest", ui.Mono(ui.Visible(d.Digest))), ui.Fact("Type", Text(ui.Visible(d.MediaType))), ui.Fact("Size", Text(ui.Size(d.Size))), ui.Fact("Created", l.Time(createdAt(d.ArtifactSummary))),
			If(len(d.Tags) > 0, ui.Fact("Tags", ui.Commas(d.Tags, func(tag string) Node {
				if task, ok := strings.CutPrefix(tag, taskTag); ok {
					return l.A(ui.RunPath(task), ui.Bdi(ui.Short(60, tag)))
				}
				return l.A("artifacts?tag="+ui.QueryValue(tag), ui.Bdi(ui.Short(60, tag)))
			}))),
			ui.With(d.Parent, func(id *string) Node { return ui.Fact("Parent", l.A(ui.ArtifactPath(*id), ui.Mono(ui.Short(16, *id)))) }),
			ui.Fact("Children", l.A("artifacts?parent="+ui.QueryValue(d.ID), Text("list"))),
			ui.Fact("Content", l.A("json/v1/artifacts/"+ui.Segment(d.ID), Text("the whole"))),
		),
		If(len(d.Metadata) > 0 && string(d.Metadata) != "null", ui.Card("metadata", "Metadata", Pre(TabIndex("0"), Text(ui.Indented(d.Metadata))))),
		ui.Block("preview", "Preview", shown),
	}
}

// artifacts returns the artifacts with the tag of the run.
func (d runData) artifacts(l *ui.Layout) Node {
	if len(d.Artifacts) == 0 {
		return nil
	}
	return ui.Block("artifacts", "Artifacts", ui.Listing(artifactHeadings, Map(d.Artifacts, func(a contract.ArtifactSummary) Node { return artifactRow(l, a) })))
}
