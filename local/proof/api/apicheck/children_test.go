package apicheck_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestHostileItems sends items, itemsFrom, onlyFailed and downstream that are malformed, too large,
// or name a run of another tenant.
func TestHostileItems(t *testing.T) {
	t.Parallel()
	stage := withTokens(t)
	as := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for token, id := range map[string]string{owner: "each", stranger: "theirs"} {
		apitest.Decoded[contract.JobSummary](t, stage, http.MethodPut, "/v1/jobs/"+id, `{"image":"a","items":["a"]}`, http.StatusCreated, as(token)...)
	}
	apitest.Decoded[contract.JobSummary](t, stage, http.MethodPut, "/v1/jobs/plain", `{"image":"a"}`, http.StatusCreated, as(owner)...)
	source := stage.Success(t, "a.json", "application/json", `["a"]`)
	const each, theirs = "/v1/jobs/each/runs", "/v1/jobs/theirs/runs"
	long := strings.Repeat("a", fan.MaxItem+1)
	many := strings.TrimSuffix(strings.Repeat(`"",`, fan.MaxChildren+1), ",")
	large := strings.TrimSuffix(strings.Repeat(`"`+long[1:]+`",`, fan.MaxItems/fan.MaxItem+1), ",")
	for name, row := range map[string]struct {
		token, path, body string
		status            int
		field             string // empty for a run that is accepted
	}{
		"own run":                 {owner, each, `{"itemsFrom":"` + source + `"}`, http.StatusAccepted, ""},
		"run of another tenant":   {stranger, theirs, `{"itemsFrom":"` + source + `"}`, http.StatusUnprocessableEntity, "itemsFrom"},
		"unknown run":             {stranger, theirs, `{"itemsFrom":"` + unknownTask + `"}`, http.StatusUnprocessableEntity, "itemsFrom"},
		"run with a NUL":          {owner, each, `{"itemsFrom":"a\u0000"}`, http.StatusUnprocessableEntity, "itemsFrom"},
		"run as a number":         {owner, each, `{"itemsFrom":1}`, http.StatusBadRequest, "itemsFrom"},
		"run and items":           {owner, each, `{"items":[],"itemsFrom":"` + source + `"}`, http.StatusBadRequest, "itemsFrom"},
		"no items":                {owner, each, `{"items":[]}`, http.StatusAccepted, ""},
		"bidirectional text":      {owner, each, `{"items":["\u202egpj.exe", "\u001b[2J"]}`, http.StatusAccepted, ""},
		"NUL":                     {owner, each, `{"items":["a","b\u0000"]}`, http.StatusBadRequest, "items"},
		"long item":               {owner, each, `{"items":["` + long + `"]}`, http.StatusBadRequest, "items"},
		"10001 items":             {owner, each, `{"items":[` + many + `]}`, http.StatusBadRequest, "items"},
		"large items":             {owner, each, `{"items":[` + large + `]}`, http.StatusBadRequest, "items"},
		"item that is a list":     {owner, each, `{"items":["a",["b"]]}`, http.StatusBadRequest, "items.1"},
		"item that is null":       {owner, each, `{"items":[null]}`, http.StatusBadRequest, "items.0"},
		"items as a text":         {owner, each, `{"items":"a"}`, http.StatusBadRequest, "items"},
		"items of a plain job":    {owner, "/v1/jobs/plain/runs", `{"items":["a"]}`, http.StatusBadRequest, "items"},
		"rerun of failed, plain":  {owner, "/v1/runs/" + source + "/retry", `{"onlyFailed":true}`, http.StatusBadRequest, "onlyFailed"},
		"rerun of failed, text":   {owner, "/v1/runs/" + source + "/retry", `{"onlyFailed":"yes"}`, http.StatusBadRequest, "onlyFailed"},
		"downstream without job":  {owner, "/v1/runs/" + source + "/retry", `{"downstream":true}`, http.StatusBadRequest, "downstream"},
		"downstream as a number":  {owner, "/v1/runs/" + source + "/retry", `{"downstream":1}`, http.StatusBadRequest, "downstream"},
		"rerun of another tenant": {stranger, "/v1/runs/" + source + "/retry", `{"onlyFailed":true,"downstream":true}`, http.StatusNotFound, ""},
	} {
		answer := stage.Call(t, http.MethodPost, row.path, row.body, as(row.token)...)
		p := decode[contract.Problem](t, answer)
		if answer.Status != row.status || p.Field != row.field {
			t.Errorf("%s: got %d %.300s, want %d for %q", name, answer.Status, answer.Body, row.status, row.field)
		}
		if len(answer.Body) > 8<<10 {
			t.Errorf("%s: got a problem of %d bytes", name, len(answer.Body))
		}
	}
	refused := func(id string) contract.Problem {
		p := constant(t, stage.Call(t, http.MethodPost, theirs, fmt.Sprintf(`{"itemsFrom":%q}`, id), as(stranger)...))
		p.Detail = strings.ReplaceAll(p.Detail, id, "")
		return p
	}
	if diff := cmp.Diff(refused(unknownTask), refused(source)); diff != "" {
		t.Errorf("got other problems for an unknown run (-) and that of another tenant (+):\n%s", diff)
	}
}
