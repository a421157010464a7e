package page

import (
	"maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Took returns the duration of a run that has started.
func (r RunRow) Took() gomponents.Node {
	if r.StartedAt.IsZero() {
		return ui.None("–")
	}
	return gomponents.Text(ui.Seconds(r.Seconds))
}

// ShownReason returns the phrase about the state, cut to a line.
func (r RunRow) ShownReason() gomponents.Node {
	if r.Reason == "" {
		return nil
	}
	return gomponents.El("bdi", html.Title(ui.Short(400, r.Reason)), gomponents.Text(ui.Short(110, r.Reason)))
}

// ToChange returns what would change a reason.
func ToChange(c *contract.Change) gomponents.Node {
	return html.P(html.B(gomponents.Text("To change it:")), ui.Space(), ui.Bdi(ui.Visible(c.Message)))
}
