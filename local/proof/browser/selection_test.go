//go:build browser

package browser_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// mark clicks the field that selects a run.
func (b *tab) mark(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		b.do(click(fmt.Sprintf(`//input[@name="run" and @value=%q]`, id)))
	}
}

// marked returns the selected runs of the page.
func (b *tab) marked() []string {
	b.t.Helper()
	return value[[]string](b, `[...document.querySelectorAll("input[name=run]:checked")].map(e => e.value)`)
}

// TestSelectedRunsAreCancelledAndRepeated marks two of three runs in a list that changes meanwhile.
func TestSelectedRunsAreCancelledAndRepeated(t *testing.T) {
	w := shared(t)
	b := signedIn(t, w.server)
	one, gate := gated(t, w.server, waiting)
	two, _ := gated(t, w.server, waiting)
	three, other := gated(t, w.server, waiting)
	t.Cleanup(func() { write(t, other) })
	b.open("runs?kind=program")
	b.mark(one, two)
	write(t, gate) // the first run ends while the page is open
	if err := w.await(one, "Completed"); err != nil {
		t.Fatal(err)
	}
	b.awaits("the end of the first run", fmt.Sprintf(`document.querySelector('tr[data-run=%q] .badge').innerText.trim() === "Completed"`, one))
	if got := b.marked(); len(got) != 2 || !slices.Contains(got, one) || !slices.Contains(got, two) {
		t.Errorf("got %q after a change of the list, want the selection of %s and %s", got, one, two)
	}
	b.press(button("Cancel…"))
	b.has("Cancel 1 run", "Nothing has changed yet", "1 run that cannot be changed", "has ended", one, two)
	if text := b.text("main"); strings.Contains(text, three) {
		t.Errorf("got %s in the preview, which is not selected", three)
	}
	b.looks("preview")
	b.do(wide.apply())
	preview := b.path()
	b.fill("input[name=reason]", "wrong input")
	b.press(button("Cancel 1 run"))
	b.has("cancel requested", "wrong input", two)
	b.looks("results")
	b.do(wide.apply())
	if err := w.await(two, "Cancelled"); err != nil {
		t.Fatal(err)
	}
	if state := w.get(t, "/v1/runs/"+three)["state"]; state != "Running" {
		t.Errorf("got the third run in %v, want Running", state)
	}

	b.open("runs?kind=program")
	b.mark(one, two, three)
	b.press(button("Rerun…"))
	b.has("Rerun 2 runs", "1 run that cannot be changed", "has not ended", three)
	b.press(button("Rerun 2 runs"))
	made := value[[]string](b, `[...document.querySelectorAll("main td:last-child a")].map(e => e.innerText).filter(id => id.startsWith("job_"))`)
	var repeated []string
	for _, id := range made {
		if of, ok := w.get(t, "/v1/runs/"+id)["retryOf"].(string); ok {
			repeated = append(repeated, of)
		}
	}
	if slices.Sort(repeated); len(repeated) != 2 || !slices.Contains(repeated, one) || !slices.Contains(repeated, two) {
		t.Errorf("got new runs of %q in %q, want one of %s and one of %s", repeated, made, one, two)
	}
	b.open(preview)
	b.has("wrong input", two, "cancel requested")
}

// TestFilterClearsTheSelection marks the runs of a page, and filters the list.
func TestFilterClearsTheSelection(t *testing.T) {
	b := signedIn(t, shared(t).server)
	b.open("runs")
	b.do(button("Select this page"))
	if got, rows := len(b.marked()), value[int](b, `document.querySelectorAll("tr[data-run]").length`); got != rows || rows == 0 {
		t.Errorf("got %d selected runs, want %d", got, rows)
	}
	b.do(choose("select[name=state]", "Completed"))
	b.press(button("Filter"))
	if got := b.marked(); len(got) != 0 {
		t.Errorf("got %q after a new filter, want no selection", got)
	}
}

// TestAllThatMatchWithoutJavaScript cancels all runs of a job by forms.
func TestAllThatMatchWithoutJavaScript(t *testing.T) {
	w := shared(t)
	definition := object{"id": "bulk", "image": "exec:/bin/sh", "command": []string{"-c", waiting}, "env": object{"GATE": "/nonexistent/gate"}}
	if _, err := w.call(http.MethodPut, "/v1/jobs/bulk", definition); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for range 3 {
		id, err := w.job("bulk", "Running")
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	b := newTab(t, w.server)
	b.script(false)
	b.signIn(w.token)
	b.open("runs?jobId=bulk")
	b.do(click(`//input[@name="all"]`))
	b.press(button("Cancel…"))
	b.has("Cancel 3 runs", "jobId=bulk")
	late, err := w.job("bulk", "Running") // after the preview
	if err != nil {
		t.Fatal(err)
	}
	b.press(button("Cancel 3 runs"))
	b.has("cancel requested")
	for _, id := range ids {
		if err := w.await(id, "Cancelled"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.get(t, "/v1/runs/"+late); got["cancel"] != nil {
		t.Errorf("got a cancel request for %s, which was not in the preview", late)
	}
	if _, err := w.call(http.MethodPost, "/v1/runs/"+late+"/cancel", object{}); err != nil {
		t.Fatal(err)
	}
}

// TestRerunWithChanges changes the command of an ended program.
func TestRerunWithChanges(t *testing.T) {
	w := shared(t)
	old, err := w.shell(`echo "hello $WHOM"`, object{"env": object{"WHOM": "before"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.await(old, "Completed"); err != nil {
		t.Fatal(err)
	}
	b := signedIn(t, w.server)
	b.open("runs/" + old)
	b.press(link("Rerun with changes…"))
	b.has("The new run")
	b.looks("form")
	b.do(wide.apply())
	b.fill(`input[name="parameter.WHOM"]`, "after")
	b.fill(`textarea[name=command]`, "-c\necho \"changed for $WHOM\"")
	b.press(button("Show the changes"))
	b.has("Nothing is started yet", "before", "after", "changed for")
	b.looks("changes")
	b.do(wide.apply())
	b.press(button("Start the new run"))
	b.has("repeats the earlier one with changes", old)
	again := b.created()
	if err := w.await(again, "Completed"); err != nil {
		t.Fatal(err)
	}
	b.open("runs/" + again)
	b.has("changed for after")
	b.open("runs/" + old)
	b.has("hello before")
}
