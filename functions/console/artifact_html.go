package console

import (
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d artifactsData) content(l *layout) Node {
	filter := func(label, name string) Node { return field(label, Name(name), Value(visible(d.Filter.Get(name)))) }
	list := Node(Group{listing(artifactHeadings, Map(d.Artifacts, func(a contract.ArtifactSummary) Node { return artifactRow(l, a) })), l.pager(d.Pager)})
	if len(d.Artifacts) == 0 {
		list = Group{empty(choose(len(d.Chips) > 0, "No artifact of this part of the list matches.", "There are no artifacts yet. Store one from a file:"), choose(len(d.Chips) > 0, "", "sortie artifacts put note note.txt")), l.pager(d.Pager)}
	}
	return Group{
		head(Text("Artifacts")),
		l.get("artifacts", Class("filters"), Role("search"), Aria("label", "Filter the artifacts"), filter("Kind", "kind"), filter("Tag", "tag"), filter("Parent", "parent"), field("Id", Name("id")), Button(Text("Filter"))),
		l.chips(d.Chips), list,
	}
}

var artifactHeadings = headings(th("Artifact", "Kind", "Type"), thNum("Size"), th("Created", "Tags"))

func artifactRow(l *layout, a contract.ArtifactSummary) Node {
	return Tr(
		Td(l.a(artifactPath(a.ID), code(short(16, a.ID)))), wide(Text(visible(a.Kind))), extra(Text(short(60, a.MediaType))), labelled("size", Text(size(a.Size))),
		Td(Data("label", "created"), l.time(createdAt(a))), wide(commas(a.Tags, func(tag string) Node { return l.a("artifacts?tag="+queryValue(tag), bdi(short(60, tag))) })),
	)
}

func (d artifactData) content(l *layout) Node {
	shown := quiet(Text("There is no preview of this type."))
	if d.Preview != nil {
		shown = d.Preview.content(l.Root+artifactPath(d.ID)+"/picture", d.Kind)
	}
	return Group{
		P(Class("crumbs"), l.a("artifacts", Text("Artifacts")), Text(" /")),
		head(Text("Artifact "+short(12, d.ID)), Span(Class("quiet"), Text(visible(d.Kind)))),
		facts(
			fact("Digest", code(visible(d.Digest))), fact("Type", Text(visible(d.MediaType))), fact("Size", Text(size(d.Size))), fact("Created", l.time(createdAt(d.ArtifactSummary))),
			If(len(d.Tags) > 0, fact("Tags", commas(d.Tags, func(tag string) Node {
				if task, ok := strings.CutPrefix(tag, taskTag); ok {
					return l.a(runPath(task), bdi(short(60, tag)))
				}
				return l.a("artifacts?tag="+queryValue(tag), bdi(short(60, tag)))
			}))),
			with(d.Parent, func(id *string) Node { return fact("Parent", l.a(artifactPath(*id), code(short(16, *id)))) }),
			fact("Children", l.a("artifacts?parent="+queryValue(d.ID), Text("list"))),
			fact("Content", l.a("json/v1/artifacts/"+segment(d.ID), Text("the whole"))),
		),
		If(len(d.Metadata) > 0 && string(d.Metadata) != "null", card("metadata", "Metadata", Pre(TabIndex("0"), Text(indented(d.Metadata))))),
		section("preview", "Preview", shown),
	}
}

// artifacts returns the artifacts with the tag of the run.
func (d runData) artifacts(l *layout) Node {
	if len(d.Artifacts) == 0 {
		return nil
	}
	return section("artifacts", "Artifacts", listing(artifactHeadings, Map(d.Artifacts, func(a contract.ArtifactSummary) Node { return artifactRow(l, a) })))
}
