package jobs

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d documentData) content(l *ui.Layout) Node {
	current, form := d.Version.Version == d.Current, d.Edit.Checked || d.Edit.Refused != ""
	return Group{
		topOf(l, d.Head), If(form, d.check(l)), d.document(l), d.changes(l),
		If(l.May("jobs:write") && current && !form, ui.Block("edit", "Edit", d.Edit.form(l, d.path()))),
		If(l.May("jobs:write") && !current, ui.Block("back", "Return to this version", l.Post(
			d.path(), ui.HiddenField("tag", d.Edit.Tag), ui.HiddenField("document", d.Edit.Text), Button(Name("step"), Value("check"), Text("Check")),
		))),
	}
}

func (d documentData) path() string { return ui.JobPath(d.Head.ID) + "/document" }

// check returns the result of a check, with the form for the next one.
func (d documentData) check(l *ui.Layout) Node {
	class, title := "card run", "The document is valid"
	if d.Edit.Refused != "" {
		class, title = "card bad", "The document is refused"
	}
	return ui.Block("check", title, Class(class), d.Edit.result(), d.Edit.form(l, d.path()))
}

func (d documentData) document(l *ui.Layout) Node {
	return ui.Block(
		"doc", ui.Joined("Version ", d.Version.Version, ui.Choose(d.Version.Version == d.Current, ", current", "")),
		ui.Quiet(Text("Stored "), l.Time(d.Version.UpdatedAt), ui.By(d.Version.UpdatedBy), Text(". Comments of a job file are not stored.")),
		Ol(Class("log doc"), TabIndex("0"), Aria("label", "Document"), Map(d.Lines, func(line documentLine) Node { return line.item("L") })),
	)
}

// item returns a line with its number. Its id has a prefix.
func (line documentLine) item(prefix string, children ...Node) Node {
	id := ui.Joined(prefix, line.Number)
	return Li(
		ID(id), If(len(line.Problems) > 0, Class("wrong")), A(ui.Relative("href", "#"+id), Aria("label", ui.Joined("Line ", line.Number)), ui.Texts(line.Number)), Span(Text(line.Text), Group(children)),
	)
}

func (d documentData) changes(l *ui.Layout) Node {
	title := "Changes since the version before"
	if d.Version.Version != d.Current {
		title = ui.Joined("Changes from version ", d.Since, " to the current one")
	}
	var versions Group
	for i, n := range d.Versions {
		versions = append(versions, If(i > 0, Text(" · ")))
		switch n {
		case d.Version.Version:
			versions = append(versions, B(ui.Texts(n)))
		case d.Current:
			versions = append(versions, l.A(d.path(), ui.Texts(n)))
		default:
			versions = append(versions, l.A(ui.Joined(d.path(), "?version=", n), ui.Texts(n)))
		}
	}
	return ui.Block("changes", title, ChangesTable(d.Changes), P(Text("Versions: "), versions))
}

// newJob returns the page with the document of a new job.
func (e edit) newJob(l *ui.Layout) Node {
	class, title := "card", ""
	switch {
	case e.Refused != "":
		class, title = "card bad", "The document is refused"
	case e.Checked:
		class, title = "card run", "The document is valid"
	}
	return Group{
		P(Class("crumbs"), l.A("jobs", Text("Jobs")), Text(" /")),
		ui.Top(Text("New job")),
		Section(Class(class), If(title != "", H2(Text(title))), e.result(), e.form(l, "new-job")),
	}
}

// result returns the result of a check.
func (e edit) result() Node {
	line := func(line documentLine) Node {
		problems := Map(line.Problems, func(problem string) Node { return B(Class("problem"), ui.Icon("cross"), Text(problem)) })
		return line.item("E", problems)
	}
	return Group{
		If(e.Refused != "", ui.Warning(Text(ui.Visible(e.Refused)))),
		If(len(e.Elsewhere) > 0, Ul(Map(e.Elsewhere, func(problem string) Node { return Li(ui.Bdi(problem)) }))),
		If(len(e.Lines) > 0, Ol(Class("log doc"), TabIndex("0"), Aria("label", "Document with problems"), Map(e.Lines, line))),
		If(e.Checked, Group{
			P(Text("It would change:")), ChangesTable(e.Changes),
			Map(e.Warnings, func(warning string) Node {
				return P(Class("caution"), ui.Icon("question"), ui.Bdi(ui.Visible(warning)))
			}),
		}),
	}
}

// form returns the form for the document. A document that was checked can be stored.
func (e edit) form(l *ui.Layout, path string) Node {
	return l.Post(
		path, Class("edit"), ui.HiddenField("tag", e.Tag),
		// Browsers remove the first line break of a text area.
		Textarea(
			Name("document"), Rows("18"), ui.Attribute("spellcheck", "false"), AutoComplete("off"), Aria("label", "Document of the job, in YAML or JSON"),
			Text("\n"+e.Text),
		),
		P(
			Class("row"), Button(Name("step"), Value("check"), If(!e.Checked, Class("primary")), Text("Check")), ui.Space(),
			If(e.Checked, Group{Button(Name("step"), Value("apply"), Class("primary"), Text("Apply")), ui.Space()}),
			Span(Class("quiet"), Text("A check changes nothing.")),
		),
	)
}
