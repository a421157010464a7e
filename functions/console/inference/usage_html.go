package inference

import (
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

// The geometry of the picture.
const (
	usageColumn = 40
	usageHeight = 80
)

// content returns the use by hour, as a picture with links and as a table.
func (u *usage) content(l *ui.Layout, of string) Node {
	hour := func(h usageHour) string {
		text := ui.Joined(h.From.Format("15:04"), " to ", h.Until.Format("15:04"), " UTC: ", h.Tokens, " tokens of ", h.Tasks, " tasks")
		if h.Spent >= 0 {
			text += ui.Joined("; the budget of the ", of, " had spent ", h.Spent)
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
			return El("rect", Class(class), ui.Attribute("x", i*usageColumn+2), ui.Attribute("y", usageHeight-high), ui.Attribute("width", usageColumn-4), ui.Attribute("height", high))
		}
		bars = append(bars, l.A(h.Path, Aria("label", hour(h)), El("title", Text(hour(h))), column("back", usageHeight), column("run", high)))
	}
	return Div(
		Class("card"), H3(Text("Tokens in the last day, and the budget of the "+of)),
		Div(Class("scroll"), SVG(
			Class("histogram"), ui.Attribute("viewBox", "0 0 ", usageColumn*usageHours, " ", usageHeight), Role("group"), Aria("label", "Tokens by hour"), bars, u.line(),
		)),
		P(Class("legend"), Span(Text(u.Hours[0].From.Format("2 Jan 15:04")+" UTC")), Span(ui.Texts("at most ", u.Most, " in an hour"), If(u.Partial, Text(", of the newest tasks")), If(u.Limit > 0, ui.Texts("; the line is what the budget had spent of ", u.Limit))), Span(Text("now"))),
		Details(Summary(Text("As a table")), ui.Grid(ui.Headings(ui.Columns("Hour"), ui.NumberColumns("Tasks", "Tokens", "Budget spent")), Map(u.Hours, func(h usageHour) Node {
			return If(h.Tasks > 0, Tr(Td(l.A(h.Path, l.Time(h.From))), ui.Num(ui.Texts(h.Tasks)), ui.Num(ui.Texts(h.Tokens)), ui.Num(ui.Choose(h.Spent >= 0, ui.Texts(h.Spent), Text("–")))))
		}))),
	)
}

// line returns what the budget had spent, as a part of its limit, or of what it has spent now.
func (u *usage) line() Node {
	whole := max(u.Limit, u.Hours[len(u.Hours)-1].Spent, 1)
	var points []string
	for i, h := range u.Hours {
		if h.Spent >= 0 {
			points = append(points, ui.Joined(i*usageColumn+usageColumn/2, ",", usageHeight-h.Spent*usageHeight/whole))
		}
	}
	return El("polyline", Class("line spent"), ui.Attribute("points", strings.Join(points, " ")))
}
