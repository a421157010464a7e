package inference

import (
	"fmt"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d inferenceData) content(l *ui.Layout) Node {
	engines := Node(Map(d.Engines, func(e EngineRow) Node { return e.content(l) }))
	if len(d.Engines) == 0 {
		engines = ui.Empty("There is no engine. This one answers without a model:", "sortie dev --engine mock")
	}
	return Group{
		ui.Top(Text("Inference"), ui.Actions(l.Button("inference/usage", Text("Usage")), ui.Space(), l.Button("artifacts", Text("Artifacts")), ui.Space(), If(l.May("runs:write"), l.Button("inference/playground", Text("Playground"))))),
		ui.Block("engines", "Engines", engines), ui.Block("models", "Models", d.models()),
		ui.Block("budgets", "Budgets", Div(Class("cards"), Map(d.Budgets, func(b BudgetView) Node { return BudgetCard(l, b) })), ui.With(d.Spending, func(s *spending) Node { return s.content(l) }), ui.With(d.Usage, func(u *usage) Node { return u.content(l, "tenant") })),
		d.sessions(l), ui.Block("tasks", "Newest tasks", d.tasks(l)),
	}
}

// content returns an engine with its replicas.
func (e EngineRow) content(l *ui.Layout) Node {
	slots := ui.Choose(e.Limit != 0, ui.Joined(e.Limit), "any number of")
	return Div(
		Class("card engine"),
		Div(
			Class("head"), H3(ui.Bdi(ui.Short(60, e.ID)), ui.Space(), Span(Class("quiet"), Text(e.kind()))), ui.Space(), e.Look.Badge(), ui.Space(),
			Span(
				Class("quiet"), Text("model "), l.A("inference/playground?model="+ui.QueryValue(e.model()), ui.Bdi(ui.Short(60, e.model()))),
				ui.Texts(" · ", e.Held, " of ", slots, " slots used · ", e.Queued, " queued"),
				ui.With(e.Health.Metrics.ExpectedWait, func(w *contract.PoolWait) Node { return Text(" · expected wait " + ui.Seconds(w.P50Seconds)) }),
			),
		),
		If(len(e.Health.Replicas) > 0, ui.Listing(
			ui.Headings(ui.Columns("State", "Replica"), ui.NumberColumns("Tasks"), ui.Columns("Version", "Reason")),
			Map(e.Health.Replicas, func(r contract.ReplicaHealth) Node { return replicaRow(l, r) }),
		)),
	)
}

func (e EngineRow) kind() string {
	if e.Engine == nil {
		return ""
	}
	return e.Engine.Kind
}

func (e EngineRow) model() string {
	if e.Engine == nil {
		return ""
	}
	return e.Engine.Model
}

func replicaRow(l *ui.Layout, r contract.ReplicaHealth) Node {
	var run, failure Node
	if m := r.Machine; m != nil {
		run = If(m.RunID != "", ui.SubLine(l.A(ui.RunPath(m.RunID), ui.Bdi(ui.Short(80, m.RunID)))))
		failure = ui.With(m.LastError, func(e *contract.PoolError) Node {
			return ui.SubLine(Text(e.Code+": "), ui.Bdi(ui.Short(200, e.Message)))
		})
	}
	return Tr(
		Td(replicaLook(r).Badge()), ui.Wide(ui.Bdi(ui.Short(80, r.ID)), run), ui.Labelled("tasks", ui.Texts(r.Held)), ui.Wide(ui.Bdi(ui.Short(60, r.EngineVersion))),
		ui.Wide(ui.Bdi(ui.Short(200, r.Reason)), failure),
	)
}

func (d inferenceData) models() Node {
	if len(d.Models) == 0 {
		return ui.Quiet(Text("The catalog has no model. Engines serve their own. "), ui.Copied("sortie models add MODEL --help"))
	}
	return ui.Listing(ui.Headings(ui.Columns("State", "Model", "Engines"), ui.NumberColumns("Context"), ui.Columns("Signed", "Source")), Map(d.Models, modelRow))
}

func modelRow(m contract.Model) Node {
	state := ui.Badge("", "slash", ui.Short(20, m.State))
	if m.State == "Active" {
		state = ui.Badge("good", "check", "Active")
	}
	engines := Node(ui.Commas(m.Engines, func(engine string) Node { return Text(ui.Short(30, engine)) }))
	if len(m.Engines) == 0 {
		engines = Text("any")
	}
	signed := Text("no")
	switch {
	case m.Verified != nil:
		signed = Group{Text("verified with "), ui.Mono(ui.Short(40, m.Verified.Key))}
	case len(m.Signature) > 0:
		signed = Text("not verified")
	}
	return Tr(
		Td(state), ui.Wide(ui.Bdi(ui.Short(80, m.ID)), ui.SubLine(ui.Mono(ui.Short(30, m.Digest)))), ui.Wide(engines), ui.Labelled("context", orDash(m.ContextTokens)),
		ui.Wide(signed), Td(Class("wide extra"), ui.Bdi(ui.Short(90, m.Source))),
	)
}

// orDash returns a number, or a dash for 0.
func orDash(n int) Node {
	if n == 0 {
		return Text("–")
	}
	return ui.Texts(n)
}

func (d inferenceData) tasks(l *ui.Layout) Node {
	if len(d.Tasks) == 0 {
		return ui.Quiet(Text("No task yet."))
	}
	return Group{
		ui.Listing(
			ui.Headings(ui.Columns("State", "Task", "Created"), ui.NumberColumns("Tokens in", "Tokens out", "Tokens a second"), ui.Columns("Reason")),
			Map(d.Tasks, func(r inferenceRow) Node { return r.row(l) }),
		),
		ui.Quiet(l.A("runs?kind=inference", Text("All inference runs"))),
	}
}

func (r inferenceRow) row(l *ui.Layout) Node {
	tokens := func(of func(*contract.InferenceDetails) *int) Node {
		if r.Inference == nil {
			return nil
		}
		if n := of(r.Inference); n != nil {
			return ui.Texts(*n)
		}
		return Text("–")
	}
	return Tr(
		Td(ui.StateOf(r.State, r.Skipped).Badge()),
		ui.Wide(
			l.A(ui.RunPath(r.RunID), ui.Bdi(ui.Short(60, r.What))),
			ui.SubLine(l.A("inference/playground?task="+ui.QueryValue(r.TaskID), Text("answer")), Text(" · "+ui.Short(40, r.TaskID))),
		),
		Td(Data("label", "created"), l.Time(r.CreatedAt)),
		ui.Labelled("in", tokens(func(i *contract.InferenceDetails) *int { return i.TokensIn })),
		ui.Labelled("out", tokens(func(i *contract.InferenceDetails) *int { return i.TokensOut })),
		ui.Labelled("rate", Text(ui.Choose(r.Rate != 0, fmt.Sprintf("%.0f", r.Rate), "–"))), ui.Wide(ui.Bdi(ui.Short(110, r.Reason))),
	)
}
