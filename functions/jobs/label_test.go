package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestRunsInheritLabels(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", path, `{"image": "app", "labels": {"team": "data", "env": "dev"}}`, 201)
	const request = `{"labels": {"env": "prod", "owner": "ana"}}`
	own, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", request, 202, "Idempotency-Key", "k")
	same, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", request, 200, "Idempotency-Key", "k")
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", `{"labels": {"env": "prod"}}`, 422, "Idempotency-Key", "k")
	plain, _ := apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", "", 202)
	apitest.Decoded[api.JobAnswer](t, stage, "PATCH", path, `{"labels": {"env": null, "new": "1"}}`, 200)
	for id, want := range map[string]string{own.RunID: "env=prod,owner=ana,team=data", same.RunID: "env=prod,owner=ana,team=data", plain.RunID: "env=dev,team=data"} {
		if got := label.Text(stage.Run(t, id).Labels); got != want {
			t.Errorf("got labels %s, want %s", got, want)
		}
	}
	j, _ := apitest.Decoded[api.JobAnswer](t, stage, "GET", path, "", 200)
	if got := label.Text(j.Labels); got != "new=1,team=data" || j.Version != 2 {
		t.Errorf("got version %d with the labels %s, want the second with its own", j.Version, got)
	}
	listed, _ := apitest.Decoded[contract.JobRuns](t, stage, "GET", path+"/runs?label=owner", "", 200)
	if len(listed.Runs) != 1 || listed.Runs[0].RunID != own.RunID {
		t.Errorf("got %+v, want the run with an owner", listed.Runs)
	}
	at := stage.Clock.Now().Add(90 * 60e9).UTC().Format("2006-01-02T15:04:05Z")
	firing := fmt.Sprintf(`{"scheduledAt": %q, "labels": {"owner": "ana"}}`, at)
	apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", firing, 202)
	apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", firing, 200)
	apitest.Decoded[contract.RunAccepted](t, stage, "POST", path+"/runs", fmt.Sprintf(`{"scheduledAt": %q}`, at), 200)
	apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", strings.Replace(firing, "ana", "bob", 1), 422)
	p, _ := apitest.Decoded[contract.Problem](t, stage, "POST", path+"/runs", `{"labels": {"a b": ""}}`, 400)
	if p.Field != "labels.a b" {
		t.Errorf("got a problem of %q, want one of the label", p.Field)
	}
}

func TestJobsAreSelectedByLabels(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for i := range 25 {
		labels := fmt.Sprintf(`{"third": "%t", "all": ""}`, i%3 == 0)
		apitest.Decoded[api.JobAnswer](t, stage, "PUT", fmt.Sprintf("/v1/jobs/job-%02d", i), `{"image": "app", "labels": `+labels+`}`, 201)
	}
	apitest.Decoded[api.JobAnswer](t, stage, "PUT", "/v1/jobs/plain", `{"image": "app"}`, 201)
	for selector, want := range map[string]int{"third=true": 9, "third!=true": 17, "all": 25, "!all": 1, "third+in+(true,false),all=": 25, "none": 0} {
		found, last := 0, ""
		for cursor := ""; ; {
			list, _ := apitest.Decoded[contract.JobList](t, stage, "GET", "/v1/jobs?limit=4&label="+selector+cursor, "", 200)
			for _, j := range list.Jobs {
				if found++; j.ID <= last {
					t.Errorf("%s: got %s after %s, want the order of ids", selector, j.ID, last)
				}
				last = j.ID
			}
			if list.NextCursor == "" {
				break
			}
			cursor = "&cursor=" + list.NextCursor
		}
		if found != want {
			t.Errorf("%s: got %d jobs, want %d", selector, found, want)
		}
	}
	for _, query := range []string{"label=", "label=a+b"} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/jobs?"+query, "", 400); p.Field != "label" {
			t.Errorf("%s: got a problem of %q, want one of label", query, p.Field)
		}
	}
}
