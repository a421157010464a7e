package console

import (
	"net/url"

	. "maragu.dev/gomponents"
	. "maragu.dev/gomponents/html"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// notices returns the notifications that have failed, with the form that sends each again.
func (d runData) notices(l *ui.Layout) Node {
	if len(d.FailedActions) == 0 {
		return nil
	}
	return ui.Block(
		"notices", "Failed notifications", Class("card bad"),
		Map(d.FailedActions, func(f contract.FailedAction) Node {
			return Div(
				P(ui.Mono(ui.Visible(f.Action)), Text(": "+f.Type+" failed "), l.Time(f.FailedAt), Text(": "), ui.Bdi(ui.Short(300, f.Answer))),
				If(f.Sending, ui.Quiet(Text("It is being sent again."))),
				If(!f.Sending && l.May("runs:write"), l.Post(ui.RunPath(d.RunID)+"/redeliver", ui.HiddenField("action", f.Action), Button(Text("Send again")))),
			)
		}),
	)
}

// redeliver sends a failed notification of a run again.
func redeliver(v *page.Visit) (string, error) {
	id := v.Request.PathValue("run_id")
	request := contract.RedeliverActionRequest{Action: v.Request.PostForm.Get("action")}
	if err := v.Post("/v1/runs/"+url.PathEscape(id)+"/redeliver", request, nil); err != nil {
		return "", err
	}
	return ui.RunPath(id) + "?done=notified", nil
}
