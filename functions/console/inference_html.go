package console

import (
	"fmt"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d inferenceData) content(l *layout) Node {
	engines := Node(Map(d.Engines, func(e engineRow) Node { return e.content(l) }))
	if len(d.Engines) == 0 {
		engines = empty("There is no engine. This one answers without a model:", "sortie dev --engine mock")
	}
	return Group{
		head(Text("Inference"), actions(l.button("artifacts", Text("Artifacts")), space(), If(l.May("runs:write"), l.button("inference/playground", Text("Playground"))))),
		section("engines", "Engines", engines), section("models", "Models", d.models()),
		section("budgets", "Budgets", Div(Class("cards"), Map(d.Budgets, l.budget)), with(d.Spending, func(s *spending) Node { return s.content(l) }), with(d.Usage, func(u *usage) Node { return u.content(l) })),
		section("tasks", "Newest tasks", d.sessions(l), d.tasks(l)),
	}
}

// content returns an engine with its replicas.
func (e engineRow) content(l *layout) Node {
	slots := choose(e.Limit != 0, joined(e.Limit), "any number of")
	return Div(
		Class("card engine"),
		Div(
			Class("head"), H3(bdi(short(60, e.ID)), space(), Span(Class("quiet"), Text(e.kind()))), space(), e.Look.badge(), space(),
			Span(
				Class("quiet"), Text("model "), l.a("inference/playground?model="+queryValue(e.model()), bdi(short(60, e.model()))),
				text(" · ", e.Held, " of ", slots, " slots used · ", e.Queued, " queued"),
				with(e.Health.Metrics.ExpectedWait, func(w *contract.PoolWait) Node { return Text(" · expected wait " + seconds(w.P50Seconds)) }),
			),
		),
		If(len(e.Health.Replicas) > 0, listing(
			headings(th("State", "Replica"), thNum("Tasks"), th("Version", "Reason")),
			Map(e.Health.Replicas, func(r contract.ReplicaHealth) Node { return replicaRow(l, r) }),
		)),
	)
}

func (e engineRow) kind() string {
	if e.Engine == nil {
		return ""
	}
	return e.Engine.Kind
}

func (e engineRow) model() string {
	if e.Engine == nil {
		return ""
	}
	return e.Engine.Model
}

func replicaRow(l *layout, r contract.ReplicaHealth) Node {
	var run, failure Node
	if m := r.Machine; m != nil {
		run = If(m.RunID != "", sub(l.a(runPath(m.RunID), bdi(short(80, m.RunID)))))
		failure = with(m.LastError, func(e *contract.PoolError) Node { return sub(Text(e.Code+": "), bdi(short(200, e.Message))) })
	}
	return Tr(
		Td(replicaLook(r).badge()), wide(bdi(short(80, r.ID)), run), labelled("tasks", text(r.Held)), wide(bdi(short(60, r.EngineVersion))),
		wide(bdi(short(200, r.Reason)), failure),
	)
}

func (d inferenceData) models() Node {
	if len(d.Models) == 0 {
		return quiet(Text("The catalog has no model. Engines serve their own. "), copied("sortie models add MODEL --help"))
	}
	return listing(headings(th("State", "Model", "Engines"), thNum("Context"), th("Signed", "Source")), Map(d.Models, modelRow))
}

func modelRow(m contract.Model) Node {
	state := badge("", "slash", short(20, m.State))
	if m.State == "Active" {
		state = badge("good", "check", "Active")
	}
	engines := Node(commas(m.Engines, func(engine string) Node { return Text(short(30, engine)) }))
	if len(m.Engines) == 0 {
		engines = Text("any")
	}
	signed := Text("no")
	switch {
	case m.Verified != nil:
		signed = Group{Text("verified with "), code(short(40, m.Verified.Key))}
	case len(m.Signature) > 0:
		signed = Text("not verified")
	}
	return Tr(
		Td(state), wide(bdi(short(80, m.ID)), sub(code(short(30, m.Digest)))), wide(engines), labelled("context", orDash(m.ContextTokens)),
		wide(signed), Td(Class("wide extra"), bdi(short(90, m.Source))),
	)
}

// orDash returns a number, or a dash for 0.
func orDash(n int) Node {
	if n == 0 {
		return Text("–")
	}
	return text(n)
}

func (d inferenceData) sessions(l *layout) Node {
	if len(d.Sessions) == 0 {
		return nil
	}
	return quiet(Text("Sessions of these tasks: "), commas(d.Sessions, func(id string) Node {
		return l.a("inference/sessions/"+segment(id), bdi(short(60, id)))
	}))
}

func (d inferenceData) tasks(l *layout) Node {
	if len(d.Tasks) == 0 {
		return quiet(Text("No task yet."))
	}
	return Group{
		listing(
			headings(th("State", "Task", "Created"), thNum("Tokens in", "Tokens out", "Tokens a second"), th("Reason")),
			Map(d.Tasks, func(r inferenceRow) Node { return r.row(l) }),
		),
		quiet(l.a("runs?kind=inference", Text("All inference runs"))),
	}
}

func (r inferenceRow) row(l *layout) Node {
	tokens := func(of func(*contract.InferenceDetails) *int) Node {
		if r.Inference == nil {
			return nil
		}
		if n := of(r.Inference); n != nil {
			return text(*n)
		}
		return Text("–")
	}
	return Tr(
		Td(stateOf(r.State, r.Skipped).badge()),
		wide(
			l.a(runPath(r.RunID), bdi(short(60, r.What))),
			sub(l.a("inference/playground?task="+queryValue(r.TaskID), Text("answer")), Text(" · "+short(40, r.TaskID))),
		),
		Td(Data("label", "created"), l.time(r.CreatedAt)),
		labelled("in", tokens(func(i *contract.InferenceDetails) *int { return i.TokensIn })),
		labelled("out", tokens(func(i *contract.InferenceDetails) *int { return i.TokensOut })),
		labelled("rate", Text(choose(r.Rate != 0, fmt.Sprintf("%.0f", r.Rate), "–"))), wide(bdi(short(110, r.Reason))),
	)
}

func (d sessionData) content(l *layout) Node {
	cache := choose(d.KVWarmth, "warm", "cold")
	if d.KVBytes != 0 {
		cache += ", " + size(d.KVBytes)
	}
	return Group{
		head(
			Group{Text("Session "), bdi(short(90, d.SessionID))},
			If(l.May("runs:write"), actions(l.post("inference/sessions/"+segment(d.SessionID)+"/close", Button(Class("danger"), Text("Close the session"))))),
		),
		facts(fact("Turns", text(d.Turns)), fact("Expires in", Text(seconds(d.Expires()))), fact("Cache", Text(cache))),
		section("budget", "Budget", Div(Class("cards"), l.budget(d.Budget))),
		P(l.a("inference", Text("Models and engines"))),
	}
}
