//go:build browser

package browser_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestDependencies follows a graph on the page of its first run, and looks at it on the page of a
// job. The name of a job is hostile.
func TestDependencies(t *testing.T) {
	w := shared(t)
	gate := filepath.Join(t.TempDir(), "gate")
	shell := func(script string, more object) object {
		more["image"], more["command"] = "exec:/bin/sh", []string{"-c", script}
		return more
	}
	put := func(id string, job object) {
		t.Helper()
		job["id"] = id
		if _, err := w.call(http.MethodPut, "/v1/jobs/"+id, job); err != nil {
			t.Fatal(err)
		}
	}
	put("graph-1", shell(waiting, object{"env": object{"GATE": gate}}))
	put("graph-2", shell("true", object{"after": []string{"graph-1"}}))
	put("graph-3", shell("true", object{"after": []object{{"job": "graph-1", "when": "failure"}}, "name": markup + bidi}))
	id, err := w.job("graph-1", "Running")
	if err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, w.server)
	b.open("jobs/graph-2")
	b.has("Dependencies", "graph-1", "graph-3", "after a failure")
	b.do(open)
	b.looks("the graph of a job")
	if value[bool](b, `"pwned" in window || document.querySelector("main img") !== null`) {
		t.Error("the name of a job is run")
	}
	b.do(wide.apply())
	b.open("runs/" + id)
	b.has("Dependencies", "not started")
	b.awaits("the stream of changes", `document.querySelector("[data-live-dot=open]")`)
	b.do(stays)
	write(t, gate)
	b.awaits("the runs after it", `["graph-2 Completed", "graph-3 Skipped"].every(name => [...document.querySelectorAll("#graph svg a")].some(a => a.textContent.includes(name)))`)
	if !value[bool](b, `window.marked === true`) {
		t.Error("the page was loaded again, want changes in place")
	}
	b.do(open)
	b.looks("the graph of a run")
	if rows := value[[]string](b, `[...document.querySelectorAll("#graph tbody tr")].map(r => r.innerText)`); len(rows) != 3 || !strings.Contains(rows[2], "Skipped") || !strings.Contains(rows[2], "after a failure") {
		t.Errorf("got the table %q, want the three jobs", rows)
	}
	b.do(wide.apply())
	b.press(click(`//*[@id="graph"]//*[local-name()="svg"]//*[local-name()="a"][contains(., "graph-2")]`))
	b.has("Dependencies", "Trigger", "after")
}
