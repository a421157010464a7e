package apicheck_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestDependencyOnAnotherTenantIsUnknown names the job of another tenant in after, and closes a
// circle. Neither changes the other job.
func TestDependencyOnAnotherTenantIsUnknown(t *testing.T) {
	t.Parallel()
	stage := withTokens(t)
	for _, row := range []struct {
		token, method, path, body string
		status                    int
		text                      string
	}{
		{owner, http.MethodPut, "first", `{"image":"a"}`, http.StatusCreated, ""},
		{stranger, http.MethodPut, "second", `{"image":"a","after":["first"]}`, http.StatusUnprocessableEntity, "unknown job"},
		{owner, http.MethodPut, "second", `{"image":"a","after":[{"job":"first","when":"always"}]}`, http.StatusCreated, ""},
		{owner, http.MethodPut, "first", `{"image":"a","after":["second"]}`, http.StatusUnprocessableEntity, "first -\\u003e second -\\u003e first"},
		{owner, http.MethodPatch, "first", `{"after":["second"]}`, http.StatusUnprocessableEntity, "in a circle"},
		{owner, http.MethodPut, "second", `{"image":"a","after":"first"}`, http.StatusBadRequest, "after"},
		{owner, http.MethodPut, "second", `{"image":"a","after":[{"job":"first","when":"never"}]}`, http.StatusBadRequest, "after.0.when"},
		{owner, http.MethodDelete, "first", "", http.StatusUnprocessableEntity, "second"},
		{owner, http.MethodDelete, "second", "", http.StatusNoContent, ""},
		{owner, http.MethodDelete, "first", "", http.StatusNoContent, ""},
	} {
		answer := stage.Call(t, row.method, "/v1/jobs/"+row.path, row.body, "Authorization", "Bearer "+row.token)
		if answer.Status != row.status || !strings.Contains(answer.Body, row.text) && !strings.Contains(answer.Body, strings.ReplaceAll(row.text, `\u003e`, ">")) {
			t.Errorf("%s %s %s: got %d %s, want %d with %q", row.method, row.path, row.body, answer.Status, answer.Body, row.status, row.text)
		}
	}
}
