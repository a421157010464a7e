package jobs_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestJobsAreFilteredOrderedAndHaveResults(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	put := func(id, document string) {
		t.Helper()
		apitest.Decoded[map[string]any](t, stage, "PUT", "/v1/jobs/"+id, document, 201)
	}
	for n := range 60 {
		put(fmt.Sprintf("job-%02d", n), `{"image": "a"}`)
	}
	put("yearly", `{"image": "a", "schedule": "@yearly", "name": "The Bill"}`)
	put("hourly", `{"image": "a", "schedule": "@hourly"}`)
	put("daily", `{"image": "a", "schedule": "@daily", "name": "a bill"}`)
	put("paused", `{"image": "a", "schedule": "@hourly"}`)
	apitest.Decoded[map[string]any](t, stage, "POST", "/v1/jobs/paused/pause", "", 200)
	for n := range 3 {
		apitest.Decoded[contract.RunAccepted](t, stage, "POST", "/v1/jobs/hourly/runs", "", 202, "Idempotency-Key", fmt.Sprint(n))
	}
	for query, want := range map[string]string{
		"order=nextAt": "hourly daily yearly", "order=nextAt&limit=2": "hourly daily", "text=bill": "daily yearly", "text=YEAR&order=id": "yearly",
		"schedule=paused": "paused", "schedule=active": "daily hourly yearly", "schedule=none&text=9": "job-09 job-19 job-29 job-39 job-49 job-59", "text=none": "",
	} {
		list, _ := apitest.Decoded[contract.JobList](t, stage, "GET", "/v1/jobs?"+query, "", 200)
		var got []string
		for _, j := range list.Jobs {
			got = append(got, j.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	var all []string
	for cursor, pages := "", 0; ; pages++ {
		list, _ := apitest.Decoded[contract.JobList](t, stage, "GET", "/v1/jobs?text=job&limit=7&cursor="+url.QueryEscape(cursor), "", 200)
		for _, j := range list.Jobs {
			all = append(all, j.ID)
		}
		if cursor = list.NextCursor; cursor == "" || pages > 60 || len(list.Jobs) > 7 {
			break
		}
	}
	if len(all) != 60 || all[0] != "job-00" || all[59] != "job-59" {
		t.Errorf("got %d jobs by pages, want each of 60 once: %q", len(all), all)
	}
	list, _ := apitest.Decoded[contract.JobList](t, stage, "GET", "/v1/jobs?results=2&schedule=active", "", 200)
	results := map[string]int{}
	for _, j := range list.Jobs {
		results[j.ID] = len(j.Results)
		for _, r := range j.Results {
			if r.State != "Pending" || r.CreatedAt.IsZero() || r.RunID == "" {
				t.Errorf("%s: got the result %+v", j.ID, r)
			}
		}
	}
	if fmt.Sprint(results) != "map[daily:0 hourly:2 yearly:0]" {
		t.Errorf("got %v results, want the newest two of the hourly job", results)
	}
	for query, field := range map[string]string{
		"order=name": "order", "order=nextAt&text=a": "order", "order=nextAt&cursor=x": "order", "schedule=often": "schedule", "schedule=": "schedule", "results=31": "results", "results=-1": "results",
		"text=" + strings.Repeat("x", 513): "text",
	} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, http.MethodGet, "/v1/jobs?"+query, "", 400); p.Field != field {
			t.Errorf("%.40s: got the field %q, want %s", query, p.Field, field)
		}
	}
}
