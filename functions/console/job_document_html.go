package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

func (d documentData) content(l *layout) Node {
	current, form := d.Version.Version == d.Current, d.Edit.Checked || d.Edit.Refused != ""
	return Group{
		l.jobHead(d.Head), If(form, d.check(l)), d.document(l), d.changes(l),
		If(l.May("jobs:write") && current && !form, section("edit", "Edit", d.Edit.form(l, d.path()))),
		If(l.May("jobs:write") && !current, section("back", "Return to this version", l.post(
			d.path(), hiddenField("tag", d.Edit.Tag), hiddenField("document", d.Edit.Text), Button(Name("step"), Value("check"), Text("Check")),
		))),
	}
}

func (d documentData) path() string { return jobPath(d.Head.ID) + "/document" }

// check returns the result of a check, with the form for the next one.
func (d documentData) check(l *layout) Node {
	class, title := "card run", "The document is valid"
	if d.Edit.Refused != "" {
		class, title = "card bad", "The document is refused"
	}
	return section("check", title, Class(class), d.Edit.result(), d.Edit.form(l, d.path()))
}

func (d documentData) document(l *layout) Node {
	return section(
		"doc", joined("Version ", d.Version.Version, choose(d.Version.Version == d.Current, ", current", "")),
		quiet(Text("Stored "), l.time(d.Version.UpdatedAt), by(d.Version.UpdatedBy), Text(". Comments of a job file are not stored.")),
		Ol(Class("log doc"), TabIndex("0"), Aria("label", "Document"), Map(d.Lines, func(line documentLine) Node { return line.item("L") })),
	)
}

// item returns a line with its number. Its id has a prefix.
func (line documentLine) item(prefix string, children ...Node) Node {
	id := joined(prefix, line.Number)
	return Li(
		ID(id), If(len(line.Problems) > 0, Class("wrong")), A(relative("href", "#"+id), Aria("label", joined("Line ", line.Number)), text(line.Number)), Span(Text(line.Text), Group(children)),
	)
}

func (d documentData) changes(l *layout) Node {
	title := "Changes since the version before"
	if d.Version.Version != d.Current {
		title = joined("Changes from version ", d.Since, " to the current one")
	}
	var versions Group
	for i, n := range d.Versions {
		versions = append(versions, If(i > 0, Text(" · ")))
		switch n {
		case d.Version.Version:
			versions = append(versions, B(text(n)))
		case d.Current:
			versions = append(versions, l.a(d.path(), text(n)))
		default:
			versions = append(versions, l.a(joined(d.path(), "?version=", n), text(n)))
		}
	}
	return section("changes", title, changesTable(d.Changes), P(Text("Versions: "), versions))
}

// newJob returns the page with the document of a new job.
func (e edit) newJob(l *layout) Node {
	class, title := "card", ""
	switch {
	case e.Refused != "":
		class, title = "card bad", "The document is refused"
	case e.Checked:
		class, title = "card run", "The document is valid"
	}
	return Group{
		P(Class("crumbs"), l.a("jobs", Text("Jobs")), Text(" /")),
		head(Text("New job")),
		Section(Class(class), If(title != "", H2(Text(title))), e.result(), e.form(l, "new-job")),
	}
}

// result returns the result of a check.
func (e edit) result() Node {
	line := func(line documentLine) Node {
		problems := Map(line.Problems, func(problem string) Node { return B(Class("problem"), icon("cross"), Text(problem)) })
		return line.item("E", problems)
	}
	return Group{
		If(e.Refused != "", warning(Text(visible(e.Refused)))),
		If(len(e.Elsewhere) > 0, Ul(Map(e.Elsewhere, func(problem string) Node { return Li(bdi(problem)) }))),
		If(len(e.Lines) > 0, Ol(Class("log doc"), TabIndex("0"), Aria("label", "Document with problems"), Map(e.Lines, line))),
		If(e.Checked, Group{
			P(Text("It would change:")), changesTable(e.Changes),
			Map(e.Warnings, func(warning string) Node { return P(Class("caution"), icon("question"), bdi(visible(warning))) }),
		}),
	}
}

// form returns the form for the document. A document that was checked can be stored.
func (e edit) form(l *layout, path string) Node {
	return l.post(
		path, Class("edit"), hiddenField("tag", e.Tag),
		// Browsers remove the first line break of a text area.
		Textarea(
			Name("document"), Rows("18"), attr("spellcheck", "false"), AutoComplete("off"), Aria("label", "Document of the job, in YAML or JSON"),
			Text("\n"+e.Text),
		),
		P(
			Class("row"), Button(Name("step"), Value("check"), If(!e.Checked, Class("primary")), Text("Check")), space(),
			If(e.Checked, Group{Button(Name("step"), Value("apply"), Class("primary"), Text("Apply")), space()}),
			Span(Class("quiet"), Text("A check changes nothing.")),
		),
	)
}
