package console

import (
	"github.com/sortie-dev/sortie/functions/console/children"
	"github.com/sortie-dev/sortie/functions/console/inference"
	"github.com/sortie-dev/sortie/functions/console/jobs"
	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/webhooks"
)

// pages are all pages of the console, in the order of the navigation. A page has a file with
// its handler, one with its markup and a test; README.md says how to add one.
var pages = []page.Page{
	overviewPage,
	runsPage, runPage, children.ListPage, rerunPage, selectionPage,
	jobs.ListPage, jobs.JobPage, jobs.DocumentPage, jobs.CalendarPage, jobs.NewPage,
	poolsPage, poolPage,
	eventsPage, eventPage, proofPage,
	webhooks.ListPage, webhooks.HookPage, webhooks.RecoverPage,
	inference.ListPage, inference.PlaygroundPage, inference.SessionPage, inference.UsagePage,
	artifactsPage, artifactPage,
	aboutPage, searchPage,
}

// doneTexts are the messages that a page shows after an action, by the value of the query
// parameter done.
var doneTexts = map[string]string{
	"cancel":   "The cancel request is recorded.",
	"too-late": "The run had already ended, or had reported success: the cancel request has no effect.",
	"rerun":    "This run repeats the earlier one.",
	"pin":      "The run is kept until it is unpinned.",
	"unpin":    "The run expires again, in a day at the earliest.",
	"notified": "The notification is sent again.",
	"changed":  "This run repeats the earlier one with changes.",

	"webhook-paused":  "The webhook is paused. Its events are not sent until it is resumed.",
	"webhook-resumed": "The webhook is active.",
	"webhook-deleted": "The webhook is deleted.",
	"budget":          "The limits of the budget are stored.",
	"session":         "The session is closed.",
	"redeliver":       "The events are sent again. The progress is below.",

	"job-paused":  "The schedule of the job is paused.",
	"job-resumed": "The schedule of the job is resumed.",
	"job-cleared": "Earlier results of the job no longer count.",
	"job-applied": "The job is stored.",
	"job-run":     "The run is accepted.",

	"pool-draining": "The pool drains: no run gets a slot.",
	"pool-resumed":  "The pool admits runs again.",
	"pool-reloaded": "The pool is reloaded.",
	"pool-limits":   "The limits are set.",
}
