package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// output returns what the run has left, with a preview.
func (d runData) output(l *layout) Node {
	if d.Task.Output == nil {
		return card("output", "Output", quiet(Text(choose(d.Ended, "The run left no output.", "The output appears when the run has completed."))))
	}
	o := d.Task.Output
	file, until, at := bdi(short(120, o.FileName)), "Deleted", o.DeletedAt
	if o.DeletedAt.IsZero() {
		file, until, at = l.a("json/download/"+segment(d.TaskID), flag("download"), file), "Kept until", o.ExpiresAt
	}
	return card(
		"output", "Output",
		Dl(
			term("File", file), term("Size", Text(size(o.Size))), term("Type", Text(visible(o.ContentType))),
			If(!at.IsZero(), term(until, l.time(at))), If(at.IsZero(), term(until, Text("the run expires"))),
		),
		with(d.Output, func(p *preview) Node {
			return Details(flag("open"), Class("commands"), Summary(Text("Preview")), p.content(l.Root+runPath(d.RunID)+"/picture", o.FileName))
		}),
	)
}

// content returns the preview. picture is the address of the output if it is a picture.
func (p *preview) content(picture, name string) Node {
	switch {
	case p.Picture:
		return Img(relative("src", picture), Alt("The output "+short(120, name)), Loading("lazy"))
	case p.Rows != nil:
		cell := func(text string) Node { return bdi(short(200, text)) }
		return Group{
			Div(Class("table"), table(
				headings(Map(p.Rows[0], func(text string) Node { return Th(Scope("col"), cell(text)) })),
				Map(p.Rows[1:], func(row []string) Node { return Tr(Map(row, func(text string) Node { return Td(cell(text)) })) }),
			)),
			If(!p.Whole, quiet(text("The first ", len(p.Rows)-1, " rows."))),
		}
	}
	return Pre(TabIndex("0"), Text(p.Text), If(!p.Whole, Text("…")))
}
