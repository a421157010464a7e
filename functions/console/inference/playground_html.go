package inference

import (
	"fmt"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (d playgroundData) content(l *ui.Layout) Node {
	form := d.form(l)
	switch {
	case len(d.Models) == 0:
		form = ui.Empty("No engine serves a model. A mock engine answers without one:", "sortie dev --engine mock")
	case !l.May("runs:write"):
		form = ui.Quiet(Text("Asking a model needs the scope "), ui.Mono("runs:write"), Text("."))
	}
	return Group{
		ui.Top(Text("Playground"), ui.Actions(l.Button("inference", Text("Models and engines")))),
		form,
		ui.With(d.Refused, func(p *contract.Problem) Node {
			return ui.Warning(
				If(p.Field != "", Group{ui.Mono(ui.Visible(p.Field)), Text(": ")}), ui.Bdi(ui.Visible(p.Detail)), ui.Space(), ui.Mono(ui.Visible(p.Code)),
			)
		}),
		ui.With(d.Answer, func(a *answerView) Node { return a.content(l) }),
		l.Module("playground.js"),
	}
}

// form returns the form for a question.
func (d playgroundData) form(l *ui.Layout) Node {
	q := d.Question
	return l.Post(
		"inference/playground", Class("card ask"), ui.Flag("data-ask"), ui.HiddenField("key", d.Key),
		Label(Text("Prompt "), Textarea(Name("prompt"), Rows("5"), Required(), Text(q.Prompt))),
		Div(
			Class("filters"),
			Label(Text("Model "), Select(Name("model"), Map(d.Models, func(name string) Node {
				return Option(If(name == q.ModelRef, Selected()), Text(name))
			}))),
			ui.Field("Most tokens", Name("max_tokens"), ui.Attribute("inputmode", "numeric"), optional(q.MaxTokens), Placeholder("what the context leaves")),
			ui.Field("Temperature", Name("temperature"), ui.Attribute("inputmode", "decimal"), optional(q.Temperature), Placeholder("the engine's")),
			ui.Field("Session", Name("session"), Value(q.SessionID)),
			Button(Class("primary"), Text("Ask")),
		),
		Details(
			If(d.System != "", ui.Flag("open")), Summary(Text("Instruction before the prompt")),
			Label(Span(Class("quiet"), Text("The engine then applies its chat template.")), Textarea(Name("system"), Rows("2"), Text(d.System))),
		),
	)
}

// optional returns the value of a field that can be empty.
func optional[T any](value *T) Node {
	if value == nil {
		return Value("")
	}
	return ui.Attribute("value", *value)
}

// content returns the answer of a task, as far as it is known.
func (a *answerView) content(l *ui.Layout) Node {
	return ui.Block(
		"answer", "Answer", Class("card answer"), If(a.Live, Data("stream", l.Root+"json/v1/tasks/"+ui.Segment(a.TaskID)+"/stream")),
		Details(If(a.Reasoning == "", ui.Flag("hidden")), Summary(Text("Reasoning")), Pre(ui.Flag("data-reasoning"), Text(ui.Visible(a.Reasoning)))),
		Pre(
			ui.Flag("data-text"), TabIndex("0"), Aria("label", "The answer"), Aria("live", "polite"), ui.Attribute("aria-busy", a.Live), Text(ui.Visible(a.Text)),
		),
		P(Class("quiet"), Role("status"), Text(a.status())),
		ui.With(a.Failure, func(f *inference.Failure) Node {
			return P(Class("warn"), ui.Mono(string(f.Code)), Text(": "), ui.Bdi(ui.Visible(f.Message)))
		}),
		P(
			l.A(ui.RunPath(a.TaskID), Text("The run")), Text(" · "),
			l.A("inference/playground?task="+ui.QueryValue(a.TaskID), Text("Address of the answer")), a.session(l),
		),
		If(a.Live && l.May("runs:write"), l.Post(
			ui.RunPath(a.TaskID)+"/cancel", ui.Flag("data-cancel"), ui.HiddenField("reason", "cancelled in the playground"), Button(Class("danger"), Text("Cancel")),
		)),
		If(a.Curl != "", Details(Class("commands"), Summary(Text("The same with curl")), P(ui.Copied(a.Curl)))),
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
	status := ui.Joined(a.End.TokensOut, " tokens from ", a.End.TokensIn)
	if a.Rate != 0 {
		status += fmt.Sprintf(" · %.0f tokens a second", a.Rate)
	}
	if a.First != 0 {
		status += " · first token after " + ui.Duration(a.First)
	}
	if a.End.Finish != "" {
		status += " · finished: " + ui.Visible(a.End.Finish)
	}
	return status
}

func (a *answerView) session(l *ui.Layout) Node {
	return ui.With(a.Inference, func(i *contract.InferenceDetails) Node {
		return If(i.SessionID != "", Group{
			Text(" · "), l.A("inference/sessions/"+ui.Segment(i.SessionID), Text("Session "), ui.Bdi(ui.Short(60, i.SessionID))),
		})
	})
}
