package console

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"
)

// The geometry of the picture.
const (
	usageColumn = 40
	usageHeight = 80
)

// content returns the use by hour, as a picture with links and as a table.
func (u *usage) content(l *layout) Node {
	hour := func(h usageHour) string {
		return joined(h.From.Format("15:04"), " to ", h.Until.Format("15:04"), " UTC: ", h.Tokens, " tokens of ", h.Tasks, " tasks")
	}
	bars := Group{}
	for i, h := range u.Hours {
		high := 0
		if h.Tokens > 0 {
			high = max(h.Tokens*usageHeight/u.Most, 2)
		}
		column := func(class string, high int) Node {
			return El("rect", Class(class), attr("x", i*usageColumn+2), attr("y", usageHeight-high), attr("width", usageColumn-4), attr("height", high))
		}
		bars = append(bars, l.a(h.Path, Aria("label", hour(h)), El("title", Text(hour(h))), column("back", usageHeight), column("run", high)))
	}
	return Div(
		Class("card"), H3(Text("Tokens in the last day")),
		Div(Class("scroll"), SVG(
			Class("histogram"), attr("viewBox", "0 0 ", usageColumn*usageHours, " ", usageHeight), Role("group"), Aria("label", "Tokens by hour"), bars,
		)),
		P(Class("legend"), Span(Text(u.Hours[0].From.Format("2 Jan 15:04")+" UTC")), Span(text("at most ", u.Most, " in an hour"), If(u.Partial, Text(", of the newest tasks"))), Span(Text("now"))),
		Details(Summary(Text("As a table")), table(headings(th("Hour"), thNum("Tasks", "Tokens")), Map(u.Hours, func(h usageHour) Node {
			return If(h.Tasks > 0, Tr(Td(l.a(h.Path, l.time(h.From))), num(text(h.Tasks)), num(text(h.Tokens))))
		}))),
	)
}
