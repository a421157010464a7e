package suite

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// nightlyReport is the job file of a nightly report. It comes after the job "extract".
//
//go:embed nightly-report.yaml
var nightlyReport []byte

func scenarios() []Test {
	return []Test{
		{Name: "nightly report is backfilled after another job", Requires: []Capability{Programs, Hooks}, Run: nightlyScenario},
		{Name: "job files of the documents run", Requires: []Capability{Programs}, Run: documentedJobs},
		{Name: "files of other programs are imported and run", Requires: []Capability{Programs}, Run: importedJobs},
	}
}

// The days of the scenario that differ from the others: the report fails once, the report fails
// in all attempts, and the job before it fails.
const (
	failsOnce   = "2"
	failsAlways = "4"
	noInput     = "6"
)

// nightlyScenario backfills a week of the job before the report.
func nightlyScenario(c *Case) {
	extract := c.job("extract", script(`case "$SORTIE_SCHEDULED_AT" in *-01-0`+noInput+`T*) exit 3;; esac`).with("schedule", "30 2 * * *").with("timeZone", "Europe/Berlin"))
	report := c.job("report", c.scenario(jobID(extract)))
	year := outside.Get[api.JobAnswer](c.Client, extract).CreatedAt.Year()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		c.T.Fatal(err)
	}
	for day := 1; day <= 7; day++ {
		at := time.Date(year-1, time.January, day, 2, 30, 0, 0, berlin).UTC().Format(time.RFC3339)
		body := fmt.Sprintf(`{"scheduledAt": %q, "backfill": "week"}`, at)
		first, _ := send[contract.RunAccepted](c, http.MethodPost, extract+"/runs", body, http.StatusAccepted)
		if again, _ := send[contract.RunAccepted](c, http.MethodPost, extract+"/runs", body, http.StatusOK); again.RunID != first.RunID {
			c.T.Errorf("%s: got the runs %s and %s, want one", at, first.RunID, again.RunID)
		}
	}
	runs := c.runsThat(report, 7, hasEnded)
	for i, r := range runs {
		c.checkReport(fmt.Sprint(i+1), r)
	}
	if n := len(c.runs(report)); n != 7 {
		c.T.Errorf("got %d reports, want 7", n)
	}
	for topic, run := range map[string]contract.Task{"failed": runs[3], "called": runs[3], "skipped": runs[5]} {
		if notices := c.noticed(topic); len(notices) != 1 || notices[0].Payload.Details["run"] != run.RunID || notices[0].Payload.Component != jobID(report) {
			c.T.Errorf("%s: got the messages %+v, want one of %s", topic, notices, run.RunID)
		}
	}
}

// scenario returns the nightly report with a shell in place of Python, short delays, and the
// receiver of the suite in place of the services.
func (c *Case) scenario(after string) document {
	var d document
	if err := yaml.Unmarshal(nightlyReport, &d); err != nil {
		c.T.Fatal(err)
	}
	delete(d, "id")
	d.with("image", ProgramImage).with("after", []string{after}).
		with("command", []string{"-c", `echo "report of $SORTIE_SCHEDULED_AT" >report.txt
			case "$SORTIE_SCHEDULED_AT $SORTIE_ATTEMPT" in *-01-0` + failsOnce + `T*\ 1|*-01-0` + failsAlways + `T*) exit 7;; esac`}).
		with("retryConfig", document{"maxRetries": 3, "initialDelay": "1s", "maxDelay": "1s"})
	actions, ok := d["actions"].(map[string]any)
	if !ok {
		c.T.Fatalf("got the actions %T, want an object", d["actions"])
	}
	d["actions"] = document{
		"onViolationOf": actions["onViolationOf"],
		"onFailure":     []document{c.notify("failed"), c.notify("called")}, "onSkip": c.notify("skipped"),
	}
	return d
}

// checkReport checks the ended report of a day in January.
func (c *Case) checkReport(day string, r contract.Task) {
	c.T.Helper()
	state, attempts := "Completed", 1
	switch day {
	case failsOnce:
		attempts = 2
	case failsAlways:
		state, attempts = "Failed", 4
	case noInput:
		attempts = 0
		if r.Missed == nil || r.Missed.Reason != "upstream_failed" {
			c.T.Errorf("day %s: got missed %+v, want upstream_failed", day, r.Missed)
		}
	}
	if r.State != state || r.Attempt != attempts || r.Skipped != (day == noInput) {
		c.T.Errorf("day %s: got %s in attempt %d, skipped %v, want %s in attempt %d", day, r.State, r.Attempt, r.Skipped, state, attempts)
	}
	if !strings.HasSuffix(r.RunID, "0"+day+"T013000Z") || r.Labels["team"] != "data" || r.Priority != "batch" {
		c.T.Errorf("day %s: got run %s with priority %q and labels %v, want that of 01:30 UTC, batch and a team", day, r.RunID, r.Priority, r.Labels)
	}
	if kept := r.ExpiresAt.Sub(r.EndedAt).Round(time.Hour); kept != 2160*time.Hour {
		c.T.Errorf("day %s: kept for %s, want 2160h", day, kept)
	}
	if r.State != "Completed" || r.Skipped {
		return
	}
	file := c.Call(http.MethodGet, "/download/"+r.TaskID, "")
	if want := "report of " + r.ScheduledAt.UTC().Format(time.RFC3339) + "\n"; string(file.Body) != want {
		c.T.Errorf("day %s: got %d %q, want %q", day, file.Status, file.Body, want)
	}
}

// notice is an event of the Events API v2 of PagerDuty, as far as the suite reads it.
type notice struct {
	RoutingKey string `json:"routing_key"`
	Action     string `json:"event_action"`
	Payload    struct {
		Summary   string            `json:"summary"`
		Component string            `json:"component"`
		Details   map[string]string `json:"custom_details"`
	} `json:"payload"`
}

// noticeFolder is the first part of the path of a notice.
const noticeFolder = "notices"

// notify returns an action that sends a notice to a topic of the receiver.
func (c *Case) notify(topic string) document {
	return document{"type": "notify", "parameters": document{
		"service": "pagerduty", "secretRef": clients.PasswordSecret, "url": c.hooks.URL + "/" + noticeFolder + "/" + c.topic(topic),
	}}
}

// noticed waits for a notice of the topic, and returns the distinct ones.
func (c *Case) noticed(topic string) (found []notice) {
	c.T.Helper()
	c.eventually("notice of "+topic, func() bool {
		c.hooks.mu.Lock()
		defer c.hooks.mu.Unlock()
		found = slices.Clone(c.hooks.notices[c.topic(topic)])
		return len(found) > 0
	})
	return found
}

// serveNotice stores a notice. A repetition has the id of the first one and is ignored.
func (h *receiver) serveNotice(topic string, w http.ResponseWriter, r *http.Request) {
	var n notice
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil || n.RoutingKey != clients.Secrets()[clients.PasswordSecret] || n.Action != "trigger" {
		h.t.Errorf("notice of %s: got %+v, %v, want an event with the routing key", topic, n, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.notices[topic], func(m notice) bool { return m.Payload.Details["run"] == n.Payload.Details["run"] }) {
		h.notices[topic] = append(h.notices[topic], n)
	}
	w.WriteHeader(http.StatusAccepted)
}
