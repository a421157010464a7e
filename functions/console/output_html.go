package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

// output returns what the run has left, with a preview.
func (d runData) output(l *ui.Layout) Node {
	if d.Task.Output == nil {
		return ui.Card("output", "Output", ui.Quiet(Text(ui.Choose(d.Ended, "The run left no output.", "The output appears when the run has completed."))))
	}
	o := d.Task.Output
	file, until, at := ui.Bdi(ui.Short(120, o.FileName)), "Deleted", o.DeletedAt
	if o.DeletedAt.IsZero() {
		file, until, at = l.A("json/download/"+ui.Segment(d.TaskID), ui.Flag("download"), file), "Kept until", o.ExpiresAt
	}
	return ui.Card(
		"output", "Output",
		Dl(
			ui.Term("File", file), ui.Term("Size", Text(ui.Size(o.Size))), ui.Term("Type", Text(ui.Visible(o.ContentType))),
			If(!at.IsZero(), ui.Term(until, l.Time(at))), If(at.IsZero(), ui.Term(until, Text("the run expires"))),
		),
		ui.With(d.Output, func(p *preview) Node {
			return Details(ui.Flag("open"), Class("commands"), Summary(Text("Preview")), p.content(l.Root+ui.RunPath(d.RunID)+"/picture", o.FileName))
		}),
	)
}

// content returns the preview. picture is the address of the output if it is a picture.
func (p *preview) content(picture, name string) Node {
	switch {
	case p.Picture:
		return Img(ui.Relative("src", picture), Alt("The output "+ui.Short(120, name)), Loading("lazy"))
	case p.Rows != nil:
		cell := func(text string) Node { return ui.Bdi(ui.Short(200, text)) }
		return Group{
			Div(Class("table"), ui.Grid(
				ui.Headings(Map(p.Rows[0], func(text string) Node { return Th(Scope("col"), cell(text)) })),
				Map(p.Rows[1:], func(row []string) Node { return Tr(Map(row, func(text string) Node { return Td(cell(text)) })) }),
			)),
			If(!p.Whole, ui.Quiet(ui.Texts("The first ", len(p.Rows)-1, " rows."))),
		}
	}
	return Pre(TabIndex("0"), Text(p.Text), If(!p.Whole, Text("…")))
}
