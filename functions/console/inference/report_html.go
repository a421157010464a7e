package inference

import (
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (r *report) content(l *ui.Layout) Node {
	top := ui.Top(Text("Usage"), l.Presets("Days", r.Spans), ui.Space(), ui.Actions(l.Button("inference", Text("Inference")), ui.Space(), l.Button(r.Sheet, Text("CSV"))))
	if r.Total.Tasks == 0 && r.Total.TimeMS == 0 {
		return Group{top, ui.Empty("No inference task has used anything in these days. This one does:", "sortie ask MODEL \"hello\"")}
	}
	return Group{
		top, ui.Block("days", "By day", r.picture()),
		Map(r.Groups, func(g reportGroup) Node { return ui.Block(g.Name, "By "+g.Name, g.content(l)) }),
	}
}

// picture returns the tokens by day, as a picture and as a table.
func (r *report) picture() Node {
	bars := Group{}
	for i, d := range r.Days {
		high := int64(0)
		if n := tokensIn(d.UsageSum); n > 0 {
			high = max(n*usageHeight/r.Most, 2)
		}
		bars = append(bars, El("rect", Class("run"), ui.Attribute("x", i*usageColumn+2), ui.Attribute("y", usageHeight-high), ui.Attribute("width", usageColumn-4), ui.Attribute("height", high)))
	}
	t := r.Total
	return Div(
		Class("card"), H3(Text("Tokens by day")),
		P(ui.Texts(t.Tasks, " tasks, ", t.InputTokens, " tokens of prompts, ", t.CachedTokens, " of them cached, ", t.OutputTokens, " generated, ", ui.Seconds(float64(t.TimeMS)/1000), " of engines, ", dollars(t.CostNano))),
		Div(Class("scroll"), SVG(
			Class("histogram"), ui.Attribute("viewBox", "0 0 ", usageColumn*len(r.Days), " ", usageHeight), Role("img"), Aria("label", "Tokens by day; the table below has the numbers"), bars,
		)),
		P(Class("legend"), Span(Text(r.From)), Span(ui.Texts("at most ", r.Most, " in a day")), Span(Text(r.To))),
		Details(Summary(Text("As a table")), ui.Scrolled(columns("Day", false), Map(r.Days, func(d contract.UsageRow) Node {
			return If(d.UsageSum != contract.UsageSum{}, Tr(Td(Text(d.Day)), figures(d.UsageSum)))
		}))),
	)
}

// columns returns the headings of a table of usage. bars adds one for the bars.
func columns(name string, bars bool) Node {
	return ui.Headings(ui.Columns(name), If(bars, ui.Columns("Share")), ui.NumberColumns("Tasks", "Input", "Cached", "Output", "Time", "Cost"))
}

// figures returns the cells of a sum.
func figures(s contract.UsageSum) Node {
	return Group{
		ui.Num(ui.Texts(s.Tasks)), ui.Num(ui.Texts(s.InputTokens)), ui.Num(ui.Texts(s.CachedTokens)), ui.Num(ui.Texts(s.OutputTokens)),
		ui.Num(Text(ui.Seconds(float64(s.TimeMS) / 1000))), ui.Num(Text(dollars(s.CostNano))),
	}
}

// content returns the rows of a group, each with a bar of its tokens.
func (g reportGroup) content(l *ui.Layout) Node {
	return Group{
		ui.Scrolled(columns(strings.ToUpper(g.Name[:1])+g.Name[1:], true), Map(g.Rows, func(row contract.UsageRow) Node {
			name := ui.Bdi(ui.Short(60, g.nameOf(row)))
			if g.Name == "model" {
				name = l.A("inference/playground?model="+ui.QueryValue(row.Model), name)
			}
			share := tokensIn(row.UsageSum) * 100 / max(g.Most, 1)
			return Tr(
				Th(Scope("row"), name),
				Td(Meter(Min("0"), Max("100"), Aria("label", "Tokens, of the largest row"), ui.Attribute("value", share), ui.Texts(share, " %"))), figures(row.UsageSum),
			)
		})),
		If(g.More > 0, P(Class("quiet"), ui.Texts("At least ", g.More, " more: the CSV has all."))),
	}
}
