package console

import (
	"maps"
	"slices"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/jobs"
	"github.com/sortie-dev/sortie/functions/console/ui"
	limits "github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d rerunData) content(l *ui.Layout) Node {
	return Group{
		P(Class("crumbs"), l.A("runs", Text("Runs")), Text(" / "), l.A(ui.RunPath(d.RunID), Text(d.RunID)), Text(" /")),
		ui.Top(Text("Rerun with changes"), Span(Class("quiet"), ui.Bdi(ui.Short(90, d.What)))),
		If(!d.Ended, ui.Warning(Text("The run has not ended. It can be repeated afterwards."))),
		If(d.Refused != "", ui.Block("refused", "The changes are refused", Class("card bad"), ui.Warning(ui.Bdi(ui.Visible(d.Refused))))),
		If(d.Checked, ui.Block("changes", "Changes", Class("card run"), jobs.ChangesTable(d.Changes), ui.Quiet(Text("Nothing is started yet. The earlier run stays as it is.")))),
		If(d.Ended, ui.Card("form", "The new run", d.form(l))),
	}
}

func (d rerunData) form(l *ui.Layout) Node {
	priorities := Map(spec.Priorities(), func(p spec.Priority) Node {
		return Option(If(d.NewPriority == string(p), Selected()), Text(string(p)))
	})
	return l.Post(
		ui.RunPath(d.RunID)+"/changes", Class("edit"), ui.HiddenField("key", d.Key), ui.HiddenField("shown", d.Shown),
		Div(
			Class("fields"), ui.With(d.Program, d.program),
			If(d.Program == nil && d.JobID == "", d.options()),
			If(d.JobID != "", ui.Quiet(Text("The rest is that of the job "), l.A(ui.JobPath(d.JobID), Text(d.JobID)), Text("."))),
			Label(ui.FieldName("Labels"), Input(Name("labels"), Value(d.NewLabels), Placeholder("KEY=VALUE, or KEY- to remove it"))),
			Label(ui.FieldName("Priority"), Select(Name("priority"), priorities)),
			If(d.JobID != "", Label(Class("check"), Input(Type("checkbox"), Name("downstream"), Value("1"), If(d.Downstream, Checked())), Text(" Rerun the jobs after it, too"))),
		),
		P(
			Class("row"), Button(Name("step"), Value("check"), If(!d.Checked, Class("primary")), Text("Show the changes")), ui.Space(),
			If(d.Checked, Button(Name("step"), Value("start"), Class("primary"), Text("Start the new run"))),
		),
	)
}

// program returns the fields of a program.
func (d rerunData) program(p *contract.Program) Node {
	return Group{
		If(d.JobID == "", Label(ui.FieldName("Image"), Input(Name("image"), Value(d.NewImage), Required()))),
		// Browsers remove the first line break of a text area.
		If(d.HasCommand, Label(ui.FieldName("Command, an argument on each line"), Textarea(Name("command"), Rows("4"), ui.Attribute("spellcheck", "false"), Text("\n"+d.Command)))),
		If(!d.HasCommand && d.JobID == "", Div(ui.FieldName("Command"), Code(Class("quiet"), Text(ui.Short(200, ui.Joined(p.Command)))))),
		Map(slices.Sorted(maps.Keys(d.NewInputs)), func(name string) Node { return jobs.InputField(name, job.Input{}, d.NewInputs[name]) }),
		Map(d.Parameters, jobs.Parameter.Field),
		Label(ui.FieldName("Other variables"), Textarea(Name("more"), Rows("2"), Placeholder("NAME=VALUE, one a line"), Text("\n"+d.More))),
	}
}

// options returns the fields of the options of an export.
func (d rerunData) options() Node {
	o := d.NewOptions
	chosen := func(name, value string, values ...string) Node {
		return Label(ui.FieldName(name), Select(Name(name), Map(values, func(v string) Node { return Option(If(v == value, Selected()), Text(v)) })))
	}
	number := func(name string, value *int) Node {
		return Label(ui.FieldName(name), Input(Type("number"), Name(name), Value(shown(value)), Required()))
	}
	return Group{
		chosen("recursive", shown(o.Recursive), "false", "true"), number("maxDepth", o.MaxDepth), number("parallelBatchSize", o.ParallelBatchSize),
		chosen("includeOcr", shown(o.IncludeOCR), "true", "false"), chosen("cheimarrosMode", shown(o.CheimarrosMode), limits.CheimarrosModes()...),
	}
}
