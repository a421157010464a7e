package console

import (
	"maps"
	"slices"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	limits "github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d rerunData) content(l *layout) Node {
	return Group{
		P(Class("crumbs"), l.a("runs", Text("Runs")), Text(" / "), l.a(runPath(d.RunID), Text(d.RunID)), Text(" /")),
		head(Text("Rerun with changes"), Span(Class("quiet"), bdi(short(90, d.What)))),
		If(!d.Ended, warning(Text("The run has not ended. It can be repeated afterwards."))),
		If(d.Refused != "", section("refused", "The changes are refused", Class("card bad"), warning(bdi(visible(d.Refused))))),
		If(d.Checked, section("changes", "Changes", Class("card run"), changesTable(d.Changes), quiet(Text("Nothing is started yet. The earlier run stays as it is.")))),
		If(d.Ended, card("form", "The new run", d.form(l))),
	}
}

func (d rerunData) form(l *layout) Node {
	priorities := Map(run.Priorities(), func(p run.Priority) Node {
		return Option(If(d.NewPriority == string(p), Selected()), Text(string(p)))
	})
	return l.post(
		runPath(d.RunID)+"/changes", Class("edit"), hiddenField("key", d.Key), hiddenField("shown", d.Shown),
		Div(
			Class("fields"), with(d.Program, d.program),
			If(d.Program == nil && d.JobID == "", d.options()),
			If(d.JobID != "", quiet(Text("The rest is that of the job "), l.a(jobPath(d.JobID), Text(d.JobID)), Text("."))),
			Label(label("Labels"), Input(Name("labels"), Value(d.NewLabels), Placeholder("KEY=VALUE, or KEY- to remove it"))),
			Label(label("Priority"), Select(Name("priority"), priorities)),
		),
		P(
			Class("row"), Button(Name("step"), Value("check"), If(!d.Checked, Class("primary")), Text("Show the changes")), space(),
			If(d.Checked, Button(Name("step"), Value("start"), Class("primary"), Text("Start the new run"))),
		),
	)
}

// program returns the fields of a program.
func (d rerunData) program(p *contract.Program) Node {
	return Group{
		If(d.JobID == "", Label(label("Image"), Input(Name("image"), Value(d.NewImage), Required()))),
		// Browsers remove the first line break of a text area.
		If(d.HasCommand, Label(label("Command, an argument on each line"), Textarea(Name("command"), Rows("4"), attr("spellcheck", "false"), Text("\n"+d.Command)))),
		If(!d.HasCommand && d.JobID == "", Div(label("Command"), Code(Class("quiet"), Text(short(200, joined(p.Command)))))),
		Map(slices.Sorted(maps.Keys(d.NewInputs)), func(name string) Node { return inputField(name, job.Input{}, d.NewInputs[name]) }),
		Map(d.Parameters, parameter.field),
		Label(label("Other variables"), Textarea(Name("more"), Rows("2"), Placeholder("NAME=VALUE, one a line"), Text("\n"+d.More))),
	}
}

// options returns the fields of the options of an export.
func (d rerunData) options() Node {
	o := d.NewOptions
	chosen := func(name, value string, values ...string) Node {
		return Label(label(name), Select(Name(name), Map(values, func(v string) Node { return Option(If(v == value, Selected()), Text(v)) })))
	}
	number := func(name string, value *int) Node {
		return Label(label(name), Input(Type("number"), Name(name), Value(shown(value)), Required()))
	}
	return Group{
		chosen("recursive", shown(o.Recursive), "false", "true"), number("maxDepth", o.MaxDepth), number("parallelBatchSize", o.ParallelBatchSize),
		chosen("includeOcr", shown(o.IncludeOCR), "true", "false"), chosen("cheimarrosMode", shown(o.CheimarrosMode), limits.CheimarrosModes()...),
	}
}
