package jobs

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
)

// picture returns results of runs as bars, and their summary for screen readers.
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
