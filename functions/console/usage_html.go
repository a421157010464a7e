package console

import (
	"strings"

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
		text := joined(h.From.Format("15:04"), " to ", h.Until.Format("15:04"), " UTC: ", h.Tokens, " tokens of ", h.Tasks, " tasks")
		if h.Spent >= 0 {
			text += joined("; the budget of the tenant had spent ", h.Spent)
		}
		return text
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
		Class("card"), H3(Text("Tokens in the last day, and the budget of the tenant")),
		Div(Class("scroll"), SVG(
			Class("histogram"), attr("viewBox", "0 0 ", usageColumn*usageHours, " ", usageHeight), Role("group"), Aria("label", "Tokens by hour"), bars, u.line(),
		)),
		P(Class("legend"), Span(Text(u.Hours[0].From.Format("2 Jan 15:04")+" UTC")), Span(text("at most ", u.Most, " in an hour"), If(u.Partial, Text(", of the newest tasks")), If(u.Limit > 0, text("; the line is what the budget had spent of ", u.Limit))), Span(Text("now"))),
		Details(Summary(Text("As a table")), table(headings(th("Hour"), thNum("Tasks", "Tokens", "Budget spent")), Map(u.Hours, func(h usageHour) Node {
			return If(h.Tasks > 0, Tr(Td(l.a(h.Path, l.time(h.From))), num(text(h.Tasks)), num(text(h.Tokens)), num(choose(h.Spent >= 0, text(h.Spent), Text("–")))))
		}))),
	)
}

// line returns what the budget had spent, as a part of its limit, or of what it has spent now.
func (u *usage) line() Node {
	whole := max(u.Limit, u.Hours[len(u.Hours)-1].Spent, 1)
	var points []string
	for i, h := range u.Hours {
		if h.Spent >= 0 {
			points = append(points, joined(i*usageColumn+usageColumn/2, ",", usageHeight-h.Spent*usageHeight/whole))
		}
	}
	return El("polyline", Class("line spent"), attr("points", strings.Join(points, " ")))
}
