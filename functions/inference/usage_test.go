package inference_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// charged serves the usage of three tasks of two days.
func charged(t *testing.T) *apitest.Stage {
	t.Helper()
	stage := setup(t)
	g := run.Generation{TokensIn: 50, CachedTokens: 40, TokensOut: 3, DecodeMS: 20, Finish: "stop"}
	stage.Charge(t, apitest.Tenant, "m", "alice", "talk", g, apitest.Began)
	stage.Charge(t, apitest.Tenant, "m", "bob", "", g, apitest.Began)
	stage.Charge(t, apitest.Tenant, "=m", "alice", "", g, apitest.Began.Add(-24*time.Hour))
	stage.Charge(t, "other", "m", "alice", "talk", g, apitest.Began)
	return stage
}

func TestUsageIsGrouped(t *testing.T) {
	t.Parallel()
	stage := charged(t)
	for query, want := range map[string]string{
		"":                          "/=m///1 /m///2",
		"?by=":                      "////3",
		"?by=key":                   "//alice//2 //bob//1",
		"?by=session":               "////2 ///talk/1",
		"?by=key,session":           "//alice//1 //alice/talk/1 //bob//1",
		"?by=day&limit=1":           "yesterday////1 today////2",
		"?by=day,model,key,session": "yesterday/=m/alice//1 today/m/alice/talk/1 today/m/bob//1",
		"?by=model&from=TODAY":      "/m///2",
		"?by=model&to=YESTERDAY":    "/=m///1",
		"?by=model&from=2020-01-01&to=2020-01-02": "",
	} {
		today, yesterday := apitest.Began.Format(time.DateOnly), apitest.Began.Add(-24*time.Hour).Format(time.DateOnly)
		query = strings.NewReplacer("TODAY", today, "YESTERDAY", yesterday).Replace(query)
		var got []string
		var sum, total int64
		for cursor := ""; ; {
			path := "/v1/usage" + query
			if cursor != "" {
				path += "&cursor=" + cursor
			}
			u, _ := apitest.Decoded[contract.Usage](t, stage, "GET", path, "", http.StatusOK)
			for _, r := range u.Rows {
				session := ""
				if r.Session != nil {
					session = *r.Session
				}
				day := strings.NewReplacer(today, "today", yesterday, "yesterday").Replace(r.Day)
				got = append(got, strings.Join([]string{day, r.Model, r.Key, session, string(rune('0' + r.Tasks))}, "/"))
				if want := (contract.UsageSum{Tasks: r.Tasks, InputTokens: 50 * r.Tasks, CachedTokens: 40 * r.Tasks, OutputTokens: 3 * r.Tasks, TimeMS: 20 * r.Tasks, CostNano: 440 * r.Tasks}); r.UsageSum != want {
					t.Errorf("%s: got %+v, want %+v", query, r.UsageSum, want)
				}
				sum += r.Tasks
			}
			total = u.Total.Tasks
			if cursor = u.NextCursor; cursor == "" {
				break
			}
		}
		if text := strings.Join(got, " "); text != want || sum != total {
			t.Errorf("%s: got %q with a total of %d, want %q", query, text, total, want)
		}
	}
}

func TestUsageAsCSV(t *testing.T) {
	t.Parallel()
	stage := charged(t)
	answer := stage.Call(t, "GET", "/v1/usage?by=model,key&limit=1", "", "Accept", "text/csv")
	want := "model,key,tasks,input_tokens,cached_tokens,output_tokens,time_ms,cost_nanodollars\r\n" +
		"'=m,alice,1,50,40,3,20,440\r\nm,alice,1,50,40,3,20,440\r\nm,bob,1,50,40,3,20,440\r\n"
	if answer.Status != http.StatusOK || answer.Body != want {
		t.Errorf("got %d %q, want %q", answer.Status, answer.Body, want)
	}
}

func TestRefusalsOfUsage(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	for query, field := range map[string]string{
		"from=yesterday": "from", "from=": "from", "to=": "to", "to=2026-02-30": "to", "from=2026-01-02&to=2026-01-01": "from", "from=2020-01-01&to=2026-01-01": "from",
		"by=tenant": "by", "by=day,day": "by", "cursor=$": "cursor", "limit=0": "limit", "limit=1001": "limit",
	} {
		if p, _ := apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/usage?"+query, "", http.StatusBadRequest); p.Field != field {
			t.Errorf("%s: got %+v, want the field %s", query, p, field)
		}
	}
	apitest.Decoded[contract.Problem](t, stage, "GET", "/v1/usage", "", http.StatusNotAcceptable, "Accept", "text/html")
}
