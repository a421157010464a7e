package jobs

import (
	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// ChangesTable returns changed fields.
func ChangesTable(changes []job.Change) Node {
	if len(changes) == 0 {
		return ui.Quiet(Text("None."))
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
	return Div(Class("table"), Table(Class("changes"), ui.Headings(ui.HiddenColumn("Kind"), ui.Columns("Field", "Before", "After")), TBody(Map(changes, func(c job.Change) Node {
		class, sign, word := kind(c)
		return Tr(
			Class(class), Td(Text(sign), Span(Class("sr"), Text(word))), Td(ui.Mono(ui.Visible(c.Field))),
			ui.Wide(ui.Mono(ui.Short(400, c.Before))), ui.Wide(ui.Mono(ui.Short(400, c.After))),
		)
	}))))
}
