package fire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/functions/fire"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

func stage(t *testing.T) *apitest.Stage {
	t.Helper()
	return apitest.New(t, apitest.NewParts(t), func(*app.System) []httpkit.Route { return nil })
}

func TestWakeUpFiresItsJob(t *testing.T) {
	t.Parallel()
	s := stage(t)
	d, problems := job.Parse([]byte("id: nightly\nimage: worker\nschedule: \"@every 1h\"\n"), nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if err := s.Store.SaveJob(t.Context(), job.Create(apitest.Tenant, d, "me", apitest.Began)); err != nil {
		t.Fatal(err)
	}
	s.Clock.Advance(time.Hour)
	for range 2 {
		output, err := fire.Handler(s.System.Firing)(t.Context(), json.RawMessage(`{"tenant":"`+apitest.Tenant+`","jobId":"nightly"}`))
		if err != nil || string(output) != "{}" {
			t.Fatalf("got output %s, %v, want {}", output, err)
		}
	}
	r, err := s.Store.Load(t.Context(), run.Ref{Tenant: apitest.Tenant, ID: run.FiringID("nightly", apitest.Began.Add(time.Hour))})
	if err != nil || r.Trigger != run.TriggerSchedule {
		t.Errorf("got run %+v, %v, want the firing", r, err)
	}
}

func TestMalformedWakeUps(t *testing.T) {
	t.Parallel()
	s := stage(t)
	for input, want := range map[string]string{
		`{"tenant":"a","jobId":"unknown"}`: "", `{}`: "InvalidInput", `[]`: "InvalidInput",
		`{"tenant":"a"}`: "InvalidInput", `{"tenant":"..","jobId":"b"}`: "InvalidInput", `{"tenant":"a","jobId":"B/c"}`: "InvalidInput",
	} {
		_, err := fire.Handler(s.System.Firing)(t.Context(), json.RawMessage(input))
		if got := lambdakit.ErrorName(err); err != nil && got != want || err == nil && want != "" {
			t.Errorf("%s: got %v, want %q", input, err, want)
		}
	}
}
