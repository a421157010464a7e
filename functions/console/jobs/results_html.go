package jobs

import (
	"strings"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

// sketch returns results of runs as bars with one title. All bars of a look are one path, so that a
// page can have those of many jobs.
func (r *results) sketch() Node {
	var looks []string
	paths := map[string]*strings.Builder{}
	draw := func(look string, path ...any) {
		if paths[look] == nil {
			looks, paths[look] = append(looks, look), &strings.Builder{}
		}
		paths[look].WriteString(ui.Joined(path...))
	}
	for _, b := range r.Bars {
		hollow := b.Class + " hollow"
		switch b.Shape {
		case "dot":
			draw(hollow, "M", b.X, ".5 20a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0")
		case "hollow":
			draw(hollow, "M", b.X, " 24V", b.Y, "h6V24z")
		case "half":
			draw(hollow, "M", b.X, " 24V", b.Y, "h6V24z")
			draw(b.Class+" thin", "M", b.X+1, " 24V", b.Y)
		case "cross":
			draw(b.Class, "M", b.X+3, " 24V", b.Y)
			draw(b.Class+" mark", "M", b.X, ".5 .5l5 5m0-5-5 5")
		default:
			draw(b.Class, "M", b.X+3, " 24V", b.Y)
		}
	}
	return SVG(
		Class("results"), ui.Attribute("viewBox", "0 0 ", r.Width, " 24"), ui.Attribute("width", r.Width), Height("24"), Role("img"), El("title", Text(r.Brief)),
		Map(looks, func(look string) Node { return El("path", Class(look), Attr("d", paths[look].String())) }),
	)
}

// picture returns results of runs as bars, each with a title, and their summary for screen readers.
func (r *results) picture() Node {
	return Group{
		SVG(
			Class("results"), ui.Attribute("viewBox", "0 0 ", r.Width, " 24"), ui.Attribute("width", r.Width), Height("24"), Aria("hidden", "true"),
			Map(r.Bars, func(b resultBar) Node {
				return El("g", Class(b.Class), El("title", Text(b.Title)), b.shapes())
			}),
		),
		Span(Class("sr"), Text(r.Summary)),
	}
}

func (b resultBar) shapes() Node {
	bar := func(width string, class Node) Node {
		return El("rect", class, ui.Attribute("x", b.X), ui.Attribute("y", b.Y), Width(width), ui.Attribute("height", b.H))
	}
	hollow := Class("hollow")
	switch b.Shape {
	case "dot":
		return El("circle", hollow, ui.Attribute("cx", b.Middle), ui.Attribute("cy", "20"), ui.Attribute("r", "2.5"))
	case "hollow":
		return bar("6", hollow)
	case "half":
		return Group{bar("6", hollow), bar("3", nil)}
	case "cross":
		mark := El("path", Class("mark"), ui.Attribute("d", "m0.500 0.500 5 5m0-5-5 5"))
		return Group{bar("6", nil), SVG(ui.Attribute("x", b.X), ui.Attribute("y", "0"), Width("6"), Height("6"), ui.Attribute("viewBox", "0 0 6 6"), mark)}
	}
	return bar("6", nil)
}
