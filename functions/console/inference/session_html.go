package inference

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

func (d sessionData) content(l *ui.Layout) Node {
	cache := ui.Choose(d.KVWarmth, "warm", "cold")
	if d.KVBytes != 0 {
		cache += ", " + ui.Size(d.KVBytes)
	}
	return Group{
		ui.Top(
			Group{Text("Session "), ui.Bdi(ui.Short(90, d.SessionID))},
			If(l.May("runs:write"), ui.Actions(l.Post("inference/sessions/"+ui.Segment(d.SessionID)+"/close", Button(Class("danger"), Text("Close the session"))))),
		),
		ui.Facts(ui.Fact("Turns", ui.Texts(d.Turns)), ui.Fact("Expires in", Text(ui.Seconds(d.Expires()))), ui.Fact("Cache", Text(cache))),
		ui.Block("budget", "Budget", Div(Class("cards"), BudgetCard(l, d.Budget)), ui.With(d.Usage, func(u *usage) Node { return u.content(l, "session") })),
		P(l.A("inference", Text("Models and engines"))),
	}
}

// sessions returns the sessions of the newest tasks with their use of tokens.
func (d inferenceData) sessions(l *ui.Layout) Node {
	if len(d.Sessions) == 0 {
		return nil
	}
	return ui.Block(
		"sessions", "Sessions", ui.Quiet(Text("Those of the newest tasks. The bars are the tokens of each hour of the last day.")),
		ui.Listing(
			ui.Headings(ui.Columns("Session"), ui.NumberColumns("Tasks", "Tokens"), ui.Columns("Last day", "Last task")),
			Map(d.Sessions, func(s sessionUse) Node {
				return Tr(
					ui.Wide(l.A("inference/sessions/"+ui.Segment(s.ID), ui.Bdi(ui.Short(60, s.ID)))), ui.Labelled("tasks", ui.Texts(s.Tasks)), ui.Labelled("tokens", ui.Texts(s.Tokens)),
					ui.Wide(ui.With(s.Usage, (*usage).bars)), Td(Data("label", "last task"), l.Time(s.LastAt)),
				)
			}),
		),
	)
}

// The geometry of the bars of a session.
const (
	barStep   = 5
	barHeight = 24
)

// bars returns the use of each hour as a small picture, and in words for screen readers.
func (u *usage) bars() Node {
	bars, words := Group{}, ""
	for i, h := range u.Hours {
		if h.Tokens == 0 {
			continue
		}
		high := max(h.Tokens*barHeight/max(u.Most, 1), 2)
		bars = append(bars, El("rect", Class("run"), ui.Attribute("x", i*barStep), ui.Attribute("y", barHeight-high), ui.Attribute("width", barStep-1), ui.Attribute("height", high)))
		words += ui.Joined(h.From.Format("15:04"), " UTC: ", h.Tokens, " tokens; ")
	}
	return Group{
		SVG(Class("histogram use"), ui.Attribute("viewBox", "0 0 ", usageHours*barStep, " ", barHeight), ui.Attribute("width", usageHours*barStep), ui.Attribute("height", barHeight), Aria("hidden", "true"), bars),
		Span(Class("sr"), Text(words)),
	}
}
