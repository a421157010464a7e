package console

import (
	"maps"
	"slices"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/shared/domain/job"
	labels "github.com/sortie-dev/sortie/shared/domain/label"
)

// badge returns a state as a colour, an icon and a word.
func (l look) badge() Node { return badge(l.Class, l.Icon, l.Word) }

func badge(class, shape, word string) Node {
	return Span(Class(strings.TrimSpace("badge "+class)), icon(shape), Text(word))
}

// time returns a relative time with the exact one.
func (l *layout) time(at time.Time) Node {
	m := when(at, l.Now)
	if m.ISO == "" {
		return none("–")
	}
	return Time(DateTime(m.ISO), TitleAttr(m.Exact), Text(m.Text))
}

// copied returns a command with a button that copies it.
func copied(command string) Node {
	return Span(Class("command"), code(command), copyButton())
}

func copyButton() Node {
	return Button(Type("button"), Class("copy"), flag("data-copy"), flag("hidden"), Text("Copy"))
}

// empty is in the place of an empty list. It says what to do, with a command or without.
func empty(message, command string) Node {
	return Div(Class("empty"), P(Text(message)), If(command != "", copied(command)))
}

// newRows is the button that shows new rows of a list. console.js shows it.
func newRows() Node {
	return Button(Type("button"), Class("pill"), flag("data-new"), flag("hidden"))
}

// pager returns the links to the newest and to older records.
func (l *layout) pager(p pager) Node {
	return l.pages(p.Newest, "« Newest", p.Older, "Older ›")
}

// pages returns the links to the first and to the next page of a list.
func (l *layout) pages(first, toFirst, next, toNext string) Node {
	if first == "" && next == "" {
		return nil
	}
	return Nav(
		Class("pager"), Aria("label", "Pages of the list"),
		If(first != "", l.a(first, Text(toFirst))), If(next != "", l.a(next, Rel("next"), Text(toNext))),
	)
}

// chips returns the filters that are in effect.
func (l *layout) chips(chips []chip) Node {
	if len(chips) == 0 {
		return nil
	}
	return Ul(Class("chips"), Aria("label", "Filters"), Map(chips, func(c chip) Node {
		return Li(l.a(
			c.Path, TitleAttr("Remove this filter"),
			Text(c.Name+": "), B(bdi(short(60, c.Value))), space(), Span(Aria("hidden", "true"), Text("×")),
		))
	}))
}

// labelLinks returns labels as links to the records of a list that have them.
func (l *layout) labelLinks(path string, of map[string]string) Node {
	return Ul(Class("chips"), Map(slices.Sorted(maps.Keys(of)), func(key string) Node {
		one := labels.Text(map[string]string{key: of[key]})
		return Li(l.a(path+"?label="+queryValue(one), Text(visible(one))))
	}))
}

// labelsLine returns the labels of a row as a quiet line.
func labelsLine(of map[string]string) Node {
	return If(len(of) > 0, sub(Text(short(120, labels.Text(of)))))
}

// presets returns filters with a name.
func (l *layout) presets(label string, presets []preset) Node {
	return Ul(Class("presets"), Aria("label", label), Map(presets, func(p preset) Node {
		return Li(l.a(p.Path, If(p.Current, Aria("current", "true")), Text(p.Label)))
	}))
}

// budget returns a budget and the form for its limits.
func (l *layout) budget(b budgetView) Node {
	return Div(
		Class("card budget"), H3(bdi(short(60, b.Scope))),
		table(headings(th("Part"), thNum("Spent", "Held", "Limit"), th("Used")), Map(b.Parts, func(p budgetPart) Node {
			return Tr(
				Td(Text(p.Name)), num(Text(p.Spent)), num(Text(p.Held)), num(Text(choose(p.Limited, p.Limit, "no limit"))),
				Td(If(p.Limited, Group{
					Meter(Min("0"), Max("100"), attr("high", "80"), attr("value", p.Share), text(p.Share, " %")), space(),
					Span(Class("quiet"), text(p.Share, " %")),
				})),
			)
		})),
		If(l.May("orch:quota"), Details(
			Summary(Text("Change the limits")),
			l.post(
				"inference/budget", Class("filters"), hiddenField("scope", b.Scope), Map(b.Parts, func(p budgetPart) Node {
					return field(p.Field, Name(p.Field), attr("inputmode", "numeric"), Value(p.Value), Placeholder("no limit"))
				}),
				Button(Text("Save")),
			),
		)),
	)
}

// picture returns results of runs as bars, and their summary for screen readers.
func (r *results) picture() Node {
	return Group{
		SVG(
			Class("results"), attr("viewBox", "0 0 ", r.Width, " 24"), attr("width", r.Width), Height("24"), Aria("hidden", "true"),
			Map(r.Bars, func(b resultBar) Node {
				return El("g", Class(b.Class), El("title", Text(b.Title)), b.shapes())
			}),
		),
		Span(Class("sr"), Text(r.Summary)),
	}
}

func (b resultBar) shapes() Node {
	bar := func(width string, class Node) Node {
		return El("rect", class, attr("x", b.X), attr("y", b.Y), Width(width), attr("height", b.H))
	}
	hollow := Class("hollow")
	switch b.Shape {
	case "dot":
		return El("circle", hollow, attr("cx", b.Middle), attr("cy", "20"), attr("r", "2.5"))
	case "hollow":
		return bar("6", hollow)
	case "half":
		return Group{bar("6", hollow), bar("3", nil)}
	case "cross":
		mark := El("path", Class("mark"), attr("d", "m0.500 0.500 5 5m0-5-5 5"))
		return Group{bar("6", nil), SVG(attr("x", b.X), attr("y", "0"), Width("6"), Height("6"), attr("viewBox", "0 0 6 6"), mark)}
	}
	return bar("6", nil)
}

// picture returns the used part of a limit.
func (m meter) picture() Node {
	return SVG(
		Class(joined("meter ", m.Class)), attr("viewBox", "0 0 100 8"), Width("100"), Height("8"), attr("preserveAspectRatio", "none"), Aria("hidden", "true"),
		El("rect", Class("whole"), Width("100"), Height("8"), attr("rx", "2")), El("rect", attr("width", m.Part), Height("8"), attr("rx", "2")),
	)
}

// jobHead returns the top of the pages of a job.
func (l *layout) jobHead(h jobHead) Node {
	pause := choose(h.Paused, "resume", "pause")
	tab := func(path, name, label string) Node {
		return Li(l.a(jobPath(h.ID)+path, If(h.Tab == name, Aria("current", "page")), Text(label)))
	}
	return Group{
		P(Class("crumbs"), l.a("jobs", Text("Jobs")), Text(" /")),
		head(
			Text(h.ID), h.State.badge(), If(h.Name != "", Group{space(), Span(Class("quiet"), bdi(short(90, h.Name)))}), space(),
			actions(
				If(l.May("runs:write"), l.button(jobPath(h.ID)+"#run", Text("Run…"))), space(),
				If(l.May("jobs:write") && (h.Scheduled || h.Paused), l.post(
					jobPath(h.ID)+"/"+pause, hiddenField("back", l.Here), Button(Text(choose(h.Paused, "Resume", "Pause"))),
				)),
			),
		),
		Ul(
			Class("tabs"), Aria("label", "Pages of the job"),
			tab("", "", "Overview"), tab("/document", "document", "Document"), tab("/calendar", "calendar", "Calendar"),
		),
	}
}

// changesTable returns changed fields.
func changesTable(changes []job.Change) Node {
	if len(changes) == 0 {
		return quiet(Text("None."))
	}
	kind := func(c job.Change) (class, sign, word string) {
		switch {
		case c.Before == "":
			return "good", "+", " new"
		case c.After == "":
			return "bad", "−", " removed"
		}
		return "", "~", " changed"
	}
	return Div(Class("table"), Table(Class("changes"), headings(thHidden("Kind"), th("Field", "Before", "After")), TBody(Map(changes, func(c job.Change) Node {
		class, sign, word := kind(c)
		return Tr(
			Class(class), Td(Text(sign), Span(Class("sr"), Text(word))), Td(code(visible(c.Field))),
			wide(code(short(400, c.Before))), wide(code(short(400, c.After))),
		)
	}))))
}
