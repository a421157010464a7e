package suite

import (
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// redelivered runs a job whose receiver refuses a notification, and then takes it.
func redelivered(c *Case) {
	path := c.job("redelivered", script("exit 7").with("retryConfig", document{"maxRetries": 0}).with("actions", document{
		"onFailure": []document{c.webhook("refused", http.StatusConflict), c.webhook("taken", http.StatusOK)},
	}))
	run := c.endOf(path, nil)
	again := "/v1/runs/" + url.PathEscape(run.RunID) + "/redeliver"
	c.eventually("failed notification", func() bool {
		failed := c.task(run.RunID).FailedActions
		return len(failed) == 1 && failed[0].Action == "onFailure" && failed[0].Type == "webhook" && failed[0].Answer != "" && !failed[0].Sending
	})
	c.received("taken", 1)
	c.wantProblem(http.StatusBadRequest, "action", http.MethodPost, again, `{"action": "onSuccess"}`)
	c.answer("refused", http.StatusOK)
	if r, _ := send[contract.Task](c, http.MethodPost, again, `{"action": "onFailure"}`, http.StatusOK); r.RunID != run.RunID {
		c.T.Errorf("got run %s, want %s", r.RunID, run.RunID)
	}
	c.received("refused", 2)
	c.eventually("no failed notification", func() bool { return len(c.task(run.RunID).FailedActions) == 0 })
	send[contract.Task](c, http.MethodPost, again, "", http.StatusOK)
	c.wantProblem(http.StatusBadRequest, "action", http.MethodPost, again, `{"action": "onFailure"}`)
	// A receiver that is slow under load may get a notification again, with the same id.
	for name, calls := range map[string][]hookCall{"refused": c.received("refused", 2), "taken": c.received("taken", 1)} {
		for _, call := range calls {
			if call.Message != calls[0].Message || call.Hook != "onFailure" {
				c.T.Errorf("got the calls %+v of the receiver %s, want one notification with one id", calls, name)
			}
		}
	}
}
