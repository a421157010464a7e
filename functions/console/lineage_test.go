package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// owner sends a request to the API with the token of the owner.
func (h *home) owner(t *testing.T, method, path, body string, status int) string {
	t.Helper()
	answer := h.Call(t, method, path, body, "Authorization", "Bearer "+ownerToken)
	if answer.Status != status {
		t.Fatalf("%s %s: got %d %s, want %d", method, path, answer.Status, answer.Body, status)
	}
	return answer.Body
}

func TestRepeatedRunsAreInTheLineage(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	ids := []string{h.Failure(t, "no disk")}
	if text := b.page("/console/runs/" + ids[0]); strings.Contains(text, "Lineage") {
		t.Error("got the lineage of a run alone")
	}
	for range 6 {
		var id string
		if _, err := fmt.Sscanf(h.owner(t, http.MethodPost, "/v1/runs/"+ids[0]+"/retry", "{}", http.StatusAccepted), `{"taskId":%q`, &id); err != nil {
			t.Fatal(err)
		}
		ids = append([]string{id}, ids...)
		h.owner(t, http.MethodPost, "/v1/runs/"+id+"/cancel", "{}", http.StatusOK)
	}
	text := b.page("/console/runs/"+ids[0], "Lineage", `class="lineage"`, "this run", "repeated by the next one", `href="../runs/`+ids[4]+`"`)
	if strings.Contains(text, ids[5]) {
		t.Error("got a fifth ancestor, want four")
	}
}

func TestExecutedDefinitionIsCompared(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	const job = "/v1/jobs/report"
	h.owner(t, http.MethodPut, job, `{"id":"report","image":"registry.example.org/report:1","name":"<b>one</b>"}`, http.StatusCreated)
	var id string
	if _, err := fmt.Sscanf(h.owner(t, http.MethodPost, job+"/runs", "{}", http.StatusAccepted), `{"taskId":%q`, &id); err != nil {
		t.Fatal(err)
	}
	page := "/console/runs/" + id
	b.page(page, "still the current one", `href="../jobs/report/document?version=1"`)
	h.owner(t, http.MethodPut, job, `{"id":"report","image":"registry.example.org/report:2","name":"<i>two</i>"}`, http.StatusOK)
	text := b.page(page, "with these changes", "registry.example.org/report:1", "registry.example.org/report:2", "&lt;b&gt;one&lt;/b&gt;", `href="../jobs/report/document"`)
	if strings.Contains(text, "<b>one") || strings.Contains(text, "<i>two") {
		t.Error("got a text of the definition as markup")
	}
	h.owner(t, http.MethodPost, "/v1/runs/"+id+"/cancel", "{}", http.StatusOK)
	h.owner(t, http.MethodDelete, job, "", http.StatusNoContent)
	b.page(page, "version 1 of the job, which is deleted")
}
