package ui

import (
	"maps"
	"slices"
	"strings"
	"time"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	labels "github.com/sortie-dev/sortie/shared/domain/label"
)

// Badge returns a state as a colour, an icon and a word.
func (l Look) Badge() Node { return Badge(l.Class, l.Icon, l.Word) }

// Badge returns a word with a colour and an icon.
func Badge(class, shape, word string) Node {
	return Span(Class(strings.TrimSpace("badge "+class)), Icon(shape), Text(word))
}

// Time returns a relative time with the exact one.
func (l *Layout) Time(at time.Time) Node {
	m := when(at, l.Now)
	if m.ISO == "" {
		return None("–")
	}
	return Time(DateTime(m.ISO), TitleAttr(m.Exact), Text(m.Text))
}

// Copied returns a command with a button that copies it.
func Copied(command string) Node {
	return Span(Class("command"), Mono(command), CopyButton())
}

// CopyButton copies the text beside it. console.js shows it.
func CopyButton() Node {
	return Button(Type("button"), Class("copy"), Flag("data-copy"), Flag("hidden"), Text("Copy"))
}

// Empty is in the place of an empty list. It says what to do, with a command or without.
func Empty(message, command string) Node {
	return Div(Class("empty"), P(Text(message)), If(command != "", Copied(command)))
}

// NewRows is the button that shows new rows of a list. console.js shows it.
func NewRows() Node {
	return Button(Type("button"), Class("pill"), Flag("data-new"), Flag("hidden"))
}

// Pager returns the links to the newest and to older records.
func (l *Layout) Pager(p Pager) Node {
	return l.Pages(p.Newest, "« Newest", p.Older, "Older ›")
}

// Pages returns the links to the first and to the next page of a list.
func (l *Layout) Pages(first, toFirst, next, toNext string) Node {
	if first == "" && next == "" {
		return nil
	}
	return Nav(
		Class("pager"), Aria("label", "Pages of the list"),
		If(first != "", l.A(first, Text(toFirst))), If(next != "", l.A(next, Rel("next"), Text(toNext))),
	)
}

// Chips returns the filters that are in effect.
func (l *Layout) Chips(chips []Chip) Node {
	if len(chips) == 0 {
		return nil
	}
	return Ul(Class("chips"), Aria("label", "Filters"), Map(chips, func(c Chip) Node {
		return Li(l.A(
			c.Path, TitleAttr("Remove this filter"),
			Text(c.Name+": "), B(Bdi(Short(60, c.Value))), Space(), Span(Aria("hidden", "true"), Text("×")),
		))
	}))
}

// LabelLinks returns labels as links to the records of a list that have them.
func (l *Layout) LabelLinks(path string, of map[string]string) Node {
	return Ul(Class("chips"), Map(slices.Sorted(maps.Keys(of)), func(key string) Node {
		one := labels.Text(map[string]string{key: of[key]})
		return Li(l.A(path+"?label="+QueryValue(one), Text(Visible(one))))
	}))
}

// LabelsLine returns the labels of a row as a quiet line.
func LabelsLine(of map[string]string) Node {
	return If(len(of) > 0, SubLine(Text(Short(120, labels.Text(of)))))
}

// Presets returns filters with a name.
func (l *Layout) Presets(label string, presets []Preset) Node {
	return Ul(Class("presets"), Aria("label", label), Map(presets, func(p Preset) Node {
		return Li(l.A(p.Path, If(p.Current, Aria("current", "true")), Text(p.Label)))
	}))
}

// Panel returns a table with a frame and a title. It is empty for no rows.
func Panel[T any](id, title string, headings Node, rows []T, row func(T) Node) Node {
	if len(rows) == 0 {
		return nil
	}
	return Card(id, title, Grid(headings, Map(rows, row)))
}
