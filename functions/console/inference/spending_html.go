package inference

import (
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

// content returns what the budget spent by hour, as a picture and as a table. The bars are the
// cost of each hour. The line is the cost in all.
func (s *spending) content(l *ui.Layout) Node {
	wide := usageColumn * (int(s.Until.Sub(s.From)/time.Hour) + 1)
	var points []string
	bars, dots := Group{}, Group{}
	for _, h := range s.Hours {
		x := usageColumn * int(h.From.Sub(s.From)/time.Hour)
		high := int64(0)
		if h.Cost > 0 {
			high = max(h.Cost*usageHeight/s.Most, 2)
		}
		bars = append(bars, El("rect", Class("run"), ui.Attribute("x", x+2), ui.Attribute("y", usageHeight-high), ui.Attribute("width", usageColumn-4), ui.Attribute("height", high)))
		at := usageHeight - min(h.Spent.CostNano, s.Whole)*usageHeight/s.Whole
		points = append(points, ui.Joined(x+usageColumn/2, ",", at))
		dots = append(dots, El("circle", Class("spent"), ui.Attribute("cx", x+usageColumn/2), ui.Attribute("cy", max(at, 3)), ui.Attribute("r", 3)))
	}
	return Div(
		Class("card"), H3(Text("Use of the budget of the tenant in the last day")),
		Div(Class("scroll"), SVG(
			Class("histogram"), ui.Attribute("viewBox", "0 0 ", wide, " ", usageHeight), Role("img"), Aria("label", "Cost by hour; the table below has the numbers"), bars,
			El("polyline", Class("line spent"), ui.Attribute("points", strings.Join(points, " "))), dots,
		)),
		P(Class("legend"), Span(l.Time(s.From)), Span(Text("bars: cost of the hour; line: cost in all"), If(s.Limited, Text(" of "+dollars(s.Whole)))), Span(Text("now"))),
		Details(Summary(Text("As a table")), ui.Grid(ui.Headings(ui.Columns("Hour"), ui.NumberColumns("Cost", "Spent", "Tokens", "Turns", "Time")), Map(s.Hours, func(h spendingHour) Node {
			return Tr(
				Td(l.Time(h.From)), ui.Num(Text(ui.Choose(h.Cost < 0, "–", dollars(h.Cost)))), ui.Num(Text(dollars(h.Spent.CostNano))), ui.Num(ui.Texts(h.Spent.Tokens)),
				ui.Num(ui.Texts(h.Spent.Turns)), ui.Num(Text(ui.Seconds(float64(h.Spent.TimeMS)/1000))),
			)
		}))),
	)
}
