package console

import (
	"fmt"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d playgroundData) content(l *layout) Node {
	form := d.form(l)
	switch {
	case len(d.Models) == 0:
		form = empty("No engine serves a model. A mock engine answers without one:", "sortie dev --engine mock")
	case !l.May("runs:write"):
		form = quiet(Text("Asking a model needs the scope "), code("runs:write"), Text("."))
	}
	return Group{
		head(Text("Playground"), actions(l.button("inference", Text("Models and engines")))),
		form,
		with(d.Refused, func(p *contract.Problem) Node {
			return warning(
				If(p.Field != "", Group{code(visible(p.Field)), Text(": ")}), bdi(visible(p.Detail)), space(), code(visible(p.Code)),
			)
		}),
		with(d.Answer, func(a *answerView) Node { return a.content(l) }),
		l.module("playground.js"),
	}
}

// form returns the form for a question.
func (d playgroundData) form(l *layout) Node {
	q := d.Question
	return l.post(
		"inference/playground", Class("card ask"), flag("data-ask"), hiddenField("key", d.Key),
		Label(Text("Prompt "), Textarea(Name("prompt"), Rows("5"), Required(), Text(q.Prompt))),
		Div(
			Class("filters"),
			Label(Text("Model "), Select(Name("model"), Map(d.Models, func(name string) Node {
				return Option(If(name == q.ModelRef, Selected()), Text(name))
			}))),
			field("Most tokens", Name("max_tokens"), attr("inputmode", "numeric"), optional(q.MaxTokens), Placeholder("what the context leaves")),
			field("Temperature", Name("temperature"), attr("inputmode", "decimal"), optional(q.Temperature), Placeholder("the engine's")),
			field("Session", Name("session"), Value(q.SessionID)),
			Button(Class("primary"), Text("Ask")),
		),
		Details(
			If(d.System != "", flag("open")), Summary(Text("Instruction before the prompt")),
			Label(Span(Class("quiet"), Text("The engine then applies its chat template.")), Textarea(Name("system"), Rows("2"), Text(d.System))),
		),
	)
}

// optional returns the value of a field that can be empty.
func optional[T any](value *T) Node {
	if value == nil {
		return Value("")
	}
	return attr("value", *value)
}

// content returns the answer of a task, as far as it is known.
func (a *answerView) content(l *layout) Node {
	return section(
		"answer", "Answer", Class("card answer"), If(a.Live, Data("stream", l.Root+"json/v1/tasks/"+segment(a.TaskID)+"/stream")),
		Details(If(a.Reasoning == "", flag("hidden")), Summary(Text("Reasoning")), Pre(flag("data-reasoning"), Text(visible(a.Reasoning)))),
		Pre(
			flag("data-text"), TabIndex("0"), Aria("label", "The answer"), Aria("live", "polite"), attr("aria-busy", a.Live), Text(visible(a.Text)),
		),
		P(Class("quiet"), Role("status"), Text(a.status())),
		with(a.Failure, func(f *inference.Failure) Node {
			return P(Class("warn"), code(string(f.Code)), Text(": "), bdi(visible(f.Message)))
		}),
		P(
			l.a(runPath(a.TaskID), Text("The run")), Text(" · "),
			l.a("inference/playground?task="+queryValue(a.TaskID), Text("Address of the answer")), a.session(l),
		),
		If(a.Live && l.May("runs:write"), l.post(
			runPath(a.TaskID)+"/cancel", flag("data-cancel"), hiddenField("reason", "cancelled in the playground"), Button(Class("danger"), Text("Cancel")),
		)),
		If(a.Curl != "", Details(Class("commands"), Summary(Text("The same with curl")), P(copied(a.Curl)))),
	)
}

func (a *answerView) status() string {
	switch {
	case a.Live:
		return "waiting …"
	case a.End == nil && a.Failure != nil:
		return "failed"
	case a.End == nil:
		return "still generated; the address below has the rest"
	}
	status := joined(a.End.TokensOut, " tokens from ", a.End.TokensIn)
	if a.Rate != 0 {
		status += fmt.Sprintf(" · %.0f tokens a second", a.Rate)
	}
	if a.First != 0 {
		status += " · first token after " + duration(a.First)
	}
	if a.End.Finish != "" {
		status += " · finished: " + visible(a.End.Finish)
	}
	return status
}

func (a *answerView) session(l *layout) Node {
	return with(a.Inference, func(i *contract.InferenceDetails) Node {
		return If(i.SessionID != "", Group{
			Text(" · "), l.a("inference/sessions/"+segment(i.SessionID), Text("Session "), bdi(short(60, i.SessionID))),
		})
	})
}
