package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestJobShowsItsScheduleAndItsRuns(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "nightly", `{"image": "report:1", "schedule": "30 2 * * *", "timeZone": "Europe/Berlin", "env": {"LEVEL": "info", "KEY": {"secretRef": "api-key"}, "LONG": "a\nb"}}`)
	b := h.signedIn(t, ownerToken)
	b.page("/console/jobs/nightly", "The job has not run yet", "The next firing is on ", "sortie jobs run nightly", "every day at 02:30", "Europe/Berlin", "sortie jobs explain nightly")
	done := h.jobRun(t, "nightly")
	h.Call(t, http.MethodPost, "/v1/runs/"+done+"/cancel", "", bearer...)
	waiting := h.jobRun(t, "nightly")
	text := b.page("/console/jobs/nightly", `href="../runs/`+done+`"`, `href="../runs/`+waiting+`"`, "newest first: Pending, Cancelled", "Cancelled", "manual",
		`name="parameter.LEVEL" value="info"`, "secret api-key", `action="../jobs/nightly/run"`, `action="../jobs/nightly/pause"`, `href="../jobs/nightly/document"`, `href="../json/v1/jobs/nightly"`)
	if strings.Contains(text, "parameter.KEY") || strings.Contains(text, "parameter.LONG") {
		t.Error("got a field for a secret, or for a value of two lines")
	}
	b.page("/console/runs/"+done, `href="../jobs/nightly"`)
	if answer := b.get("/console/jobs/none"); answer.Status != http.StatusNotFound {
		t.Errorf("got %d, want 404", answer.Status)
	}
}

func TestSkippedFiringsAreMarked(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "often", `{"image": "a", "schedule": "@every 1h", "missed": "none"}`)
	h.Clock.Advance(5 * time.Hour)
	if err := h.System.Sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	b := h.signedIn(t, ownerToken)
	b.page("/console/jobs/often", "Skipped firings", "Skipped", " firings")
	b.page("/console/jobs/often/calendar", `<span class="sr">Skipped</span> × `, `class="fired off"`, "Skipped firings", `id="h-skipped"`)
}

func TestDocumentIsCheckedBeforeItIsStored(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "nightly", `{"image": "report:1", "schedule": "30 2 * * *"}`)
	b := h.signedIn(t, ownerToken)
	const path = "/console/jobs/nightly/document"
	text := b.page(path, `<li id="L1">`, "image: report:1", "Version 1, current", "None.", `name="step" value="check"`)
	if strings.Contains(text, `value="apply"`) {
		t.Error("got an Apply before the check")
	}
	_, rest, _ := strings.Cut(text, `name="tag" value="`)
	tag, _, _ := strings.Cut(rest, `"`)
	tag = strings.NewReplacer("&#34;", `"`).Replace(tag)
	wrong := b.post(path, "tag", tag, "step", "check", "document", "id: nightly\r\nimage: 'report:2'\r\nschedule: 'every day <b>'\r\npolicy: {timeLimitSeconds: no}\r\n")
	for _, want := range []string{"The document is refused", "2 problems", `<li id="E3" class="wrong">`, `<li id="E4" class="wrong">`, "schedule: ", "every day &lt;b&gt;", "timeLimitSeconds"} {
		if !strings.Contains(wrong.Body, want) {
			t.Errorf("got no %q in %s", want, mainPart(wrong.Body))
		}
	}
	if wrong.Status != http.StatusUnprocessableEntity || strings.Contains(wrong.Body, "<b>'") || strings.Contains(wrong.Body, `value="apply"`) {
		t.Errorf("got %d %s, want the problems and no Apply", wrong.Status, mainPart(wrong.Body))
	}
	changed := "id: nightly\r\nimage: report:2\r\ncommand: [x]\r\n"
	checked := b.post(path, "tag", tag, "step", "check", "document", changed)
	for _, want := range []string{"The document is valid", "<code>image</code>", "<code>&#34;report:2&#34;</code>", "<code>schedule</code>", "<code>command</code>", `value="apply"`} {
		if !strings.Contains(checked.Body, want) {
			t.Errorf("got no %q in %s", want, mainPart(checked.Body))
		}
	}
	if h.stored(t, "nightly").Version != 1 {
		t.Error("got a new version by a check")
	}
	applied := b.post(path, "tag", tag, "step", "apply", "document", changed)
	if to := applied.Header.Get("Location"); applied.Status != http.StatusSeeOther || to != path+"?done=job-applied" {
		t.Fatalf("got %d %s to %q, want the document", applied.Status, mainPart(applied.Body), to)
	}
	if j := h.stored(t, "nightly"); j.Version != 2 || j.Image != "report:2" || j.Schedule != "" {
		t.Errorf("got %+v, want the applied document", j)
	}
	b.page(path+"?done=job-applied", "The job is stored", "Version 2, current", "Changes since the version before", "<code>image</code>", "?version=1")
	b.page(path+"?version=1", "Version 1</h2>", "image: report:1", "Changes from version 1 to the current one", "Return to this version", `json/v1/jobs/nightly/versions/1"`)
	old := b.post(path, "tag", tag, "step", "check", "document", "id: nightly\r\nimage: report:1\r\nschedule: 30 2 * * *\r\n")
	if old.Status != http.StatusUnprocessableEntity {
		t.Errorf("got %d for the tag of an earlier version, want 422", old.Status)
	}
	late := b.post(path, "tag", tag, "step", "apply", "document", "id: nightly\nimage: other\n")
	if late.Status != http.StatusUnprocessableEntity || !strings.Contains(late.Body, "The document is refused") || !strings.Contains(late.Body, "image: other") || h.stored(t, "nightly").Version != 2 {
		t.Errorf("got %d %s, want a refusal that keeps the text", late.Status, mainPart(late.Body))
	}
	for _, query := range []string{"?version=x", "?version=9", "?version=-1"} {
		if answer := b.get(path + query); answer.Status != http.StatusBadRequest && answer.Status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 400 or 404", query, answer.Status)
		}
	}
}

func TestNewJobIsStored(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "taken", `{"image": "a"}`)
	b := h.signedIn(t, ownerToken)
	b.page("/console/new-job", "id: hello")
	for document, want := range map[string]string{
		"image: a\n": "id", "id: taken\nimage: b\n": "refused", "id: [\n": "refused", "": "refused", "id: x\nimage: a\nnone: 1\n": `<li id="E3" class="wrong">`,
	} {
		if answer := b.post("/console/new-job", "step", "apply", "document", document); answer.Status != http.StatusUnprocessableEntity || !strings.Contains(answer.Body, want) {
			t.Errorf("%q: got %d %s, want %q", document, answer.Status, mainPart(answer.Body), want)
		}
	}
	answer := b.post("/console/new-job", "step", "apply", "document", `{"id": "fresh", "image": "a"}`)
	if to := answer.Header.Get("Location"); to != "/console/jobs/fresh/document?done=job-applied" || h.stored(t, "fresh").Version != 1 || h.stored(t, "taken").Version != 1 {
		t.Errorf("got %d to %q, want the new job", answer.Status, to)
	}
}

// TestCalendarMarksChangesOfTheClock starts the clock before the change of 2027-03-28 in Berlin.
func TestCalendarMarksChangesOfTheClock(t *testing.T) {
	t.Parallel()
	h := setup(t)
	at := time.Date(2027, 3, 24, 12, 0, 0, 0, time.UTC)
	h.Clock.Advance(at.Sub(h.Clock.Now()))
	h.job(t, "nightly", `{"image": "a", "schedule": "30 2 * * *", "timeZone": "Europe/Berlin"}`)
	h.job(t, "minutely", `{"image": "a", "schedule": "* * * * *"}`)
	h.job(t, "manual", `{"image": "a"}`)
	b := h.signedIn(t, ownerToken)
	text := b.page("/console/jobs/nightly/calendar", "Europe/Berlin", `class="today"><b>24 Mar</b>`, `clock: 02:00 → 03:00`, "Sunday, 28 March 2027", "02:00 becomes 03:00",
		"03:00:00 CEST, the first time after the skipped hour", "Sunday, 31 October 2027", "03:00 becomes 02:00", "02:30:00 CEST")
	if n := strings.Count(text, `<span class="firing">02:30</span>`); n != 31 { // 25 March to 25 April, but for the 28th
		t.Errorf("got %d firings at 02:30, want 31", n)
	}
	b.page("/console/jobs/minutely/calendar", "over 97 more", "The clock of UTC does not change")
	b.page("/console/jobs/manual/calendar", "The job has no schedule")
	h.Call(t, http.MethodPost, "/v1/jobs/nightly/pause", "", bearer...)
	b.page("/console/jobs/nightly/calendar", "if it was resumed now", `<span class="firing">02:30</span>`)
}

func TestOutageIsSimulated(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "nightly", `{"image": "a", "schedule": "0 2 * * *"}`)
	h.job(t, "catching", `{"image": "a", "schedule": "@every 1h", "missed": "all", "startingDeadline": "24h"}`)
	b := h.signedIn(t, ownerToken)
	const down = "?from=2027-03-10T00:30&to=2027-03-10T06:00"
	b.page("/console/jobs/nightly/calendar"+down, "Wed 10 Mar 02:00:00 UTC", "Skipped", `value="2027-03-10T00:30"`, "Thu 11 Mar 02:00:00 UTC", "Runs")
	b.page("/console/jobs/catching/calendar"+down, "min late")
	for _, query := range []string{
		"?from=2027-03-10T00:30", "?to=2027-03-10T00:30", "?from=x&to=y", "?from=2027-03-10T00:30&to=2027-03-10T00:30", "?from=2027-03-10T00:30&to=2027-06-10T00:30", "?from=1027-03-10T00:30&to=1027-03-10T01:30",
	} {
		if answer := b.get("/console/jobs/nightly/calendar" + query); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", query, answer.Status)
		}
	}
}

func TestJobPagesNeedScopeAndTenant(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "nightly", `{"image": "secret-image", "schedule": "@daily"}`)
	reader, other := h.signedIn(t, readerToken), h.signedIn(t, otherToken)
	for _, path := range []string{"", "/document", "/calendar"} {
		if text := reader.page("/console/jobs/nightly" + path); strings.Contains(text, "<button>Pause") || strings.Contains(text, "<textarea") || strings.Contains(text, `/run"`) {
			t.Errorf("%s: got an action for a reader", path)
		}
		if answer := other.get("/console/jobs/nightly" + path); answer.Status != http.StatusNotFound || strings.Contains(answer.Body, "secret-image") {
			t.Errorf("%s: got %d %s of another tenant, want 404", path, answer.Status, answer.Body)
		}
	}
	if answer := reader.get("/console/new-job"); answer.Status != http.StatusForbidden {
		t.Errorf("got %d for a new job of a reader, want 403", answer.Status)
	}
	reader.page("/console/jobs")
	other.page("/console/jobs")
	for path, want := range map[string]int{"/console/jobs/nightly/document": http.StatusNotFound, "/console/new-job": http.StatusSeeOther} {
		id := map[bool]string{true: "fresh", false: "nightly"}[path == "/console/new-job"]
		fields := []string{"step", "apply", "document", "id: " + id + "\nimage: other\n"}
		if answer := reader.post(path, fields...); answer.Status != http.StatusForbidden {
			t.Errorf("%s of a reader: got %d, want 403", path, answer.Status)
		}
		if answer := other.post(path, fields...); answer.Status != want {
			t.Errorf("%s of another tenant: got %d, want %d", path, answer.Status, want)
		}
	}
	if j := h.stored(t, "nightly"); j.Image != "secret-image" || j.Version != 1 {
		t.Errorf("got %+v, want the job as it was", j)
	}
}

func TestHostileJobsAreOnlyShown(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	for _, text := range hostile {
		if len(text) > 100_000 {
			text = text[:20_000]
		}
		quoted := jsonText(text)
		answer := h.Call(t, http.MethodPut, "/v1/jobs/hostile", `{"image": "a", "command": [`+quoted+`], "name": `+jsonText(strings.ToValidUTF8(text[:min(len(text), 60)], ""))+`, "env": {"A": `+quoted+`}}`, bearer...)
		if answer.Status >= 300 { // the API refuses a NUL
			answer = h.Call(t, http.MethodPut, "/v1/jobs/hostile", `{"image": "a", "env": {"A": `+jsonText(strings.ReplaceAll(text, "\x00", ""))+`}}`, bearer...)
		}
		if answer.Status >= 300 {
			t.Fatalf("%.40q: got %d %s", text, answer.Status, answer.Body)
		}
		b.page("/console/jobs/hostile")
		pages := []string{
			b.page("/console/jobs"), b.page("/console/jobs/hostile"), b.page("/console/jobs/hostile/document"), b.page("/console/jobs/hostile/document?version=1"), b.page("/console/jobs/hostile/calendar"),
			b.post("/console/jobs/hostile/document", "step", "check", "document", `{"id": "hostile", "image": "b", "name": `+quoted+`}`).Body,
			b.get("/console/jobs/hostile/document?version=" + url.QueryEscape(text[:min(len(text), 100)])).Body,
			b.get("/console/jobs/hostile/calendar?from=" + url.QueryEscape(text[:min(len(text), 100)])).Body,
		}
		for n, page := range pages {
			for _, never := range []string{"<script>alert", "<img", `href="javascript:`, "\u202e", "\x00", "\x1b"} {
				if strings.Contains(page, never) {
					t.Errorf("%.40q: page %d: got %q", text, n, never)
				}
			}
		}
	}
	// The document of a job with hidden characters can be stored again as it is shown.
	h.job(t, "hidden", `{"image": "a", "env": {"A": "x\u202ey\ud83d\ude00\udb40\udc41"}}`)
	text := b.page("/console/jobs/hidden/document", `x\u202ey`)
	_, rest, _ := strings.Cut(text, "<textarea")
	_, rest, _ = strings.Cut(rest, ">\n")
	document, _, _ := strings.Cut(rest, "</textarea>")
	document = strings.NewReplacer("&#34;", `"`).Replace(document)
	if answer := b.post("/console/jobs/hidden/document", "step", "apply", "document", document); answer.Status != http.StatusSeeOther {
		t.Fatalf("got %d %s, want the job", answer.Status, mainPart(answer.Body))
	}
	if j := h.stored(t, "hidden"); j.Version != 1 || j.Env["A"].Value != "x\u202ey\U0001F600\U000E0041" {
		t.Errorf("got version %d with %+q, want no change", j.Version, j.Env["A"].Value)
	}
}

// TestListOfJobsReadsNoOperationPerJob counts the requests of the list.
func TestListOfJobsReadsNoOperationPerJob(t *testing.T) {
	t.Parallel()
	h := setup(t)
	b := h.signedIn(t, ownerToken)
	requests := func() int64 {
		before := h.calls.made.Load()
		b.page("/console/jobs")
		return h.calls.made.Load() - before
	}
	h.job(t, "first", `{"image": "a"}`)
	one := requests()
	for _, id := range []string{"second", "third", "fourth"} {
		h.job(t, id, `{"image": "a"}`)
		h.jobRun(t, id)
	}
	if many := requests(); many != one || one != 1 {
		t.Errorf("got %d requests for four jobs and %d for one, want 1", many, one)
	}
}

// TestRunNowHasAFieldForEachInput runs a job with its form, with what the form has and what it
// does not.
func TestRunNowHasAFieldForEachInput(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.job(t, "day", `{"image": "a", "inputs": {"day": {"type": "date", "required": true, "description": "<b>which</b>"}, "level": {"choices": ["info", "\"><script>"], "default": "info"},
		"count": {"type": "integer", "default": 3}, "dry": {"type": "boolean"}, "text": {"default": "a\nb"}}}`)
	b := h.signedIn(t, ownerToken)
	text := b.page("/console/jobs/day", `name="input.day" required type="date"`, "&lt;b&gt;which&lt;/b&gt;", `<select name="input.level">`, `value="&#34;&gt;&lt;script&gt;"`,
		`name="input.count" type="number" step="any" value="3"`, `<select name="input.dry"><option value="">none</option><option value="true">`)
	if strings.Contains(text, `name="input.text"`) || strings.Contains(text, "<b>which") || strings.Contains(text, "<script>\"") {
		t.Error("got a field for a value of two lines, or markup of the job")
	}
	for name, row := range map[string]struct {
		fields []string
		status int
	}{
		"no day":         {[]string{"input.day", ""}, http.StatusBadRequest},
		"no date":        {[]string{"input.day", "<script>"}, http.StatusBadRequest},
		"unknown input":  {[]string{"input.day", "2027-03-01", "input.none", "x"}, http.StatusBadRequest},
		"another choice": {[]string{"input.day", "2027-03-01", "input.level", "debug"}, http.StatusBadRequest},
		"valid":          {[]string{"input.day", "2027-03-01", "input.level", `"><script>`, "input.count", "", "input.dry", "true"}, http.StatusSeeOther},
	} {
		answer := b.post("/console/jobs/day/run", row.fields...)
		if answer.Status != row.status || strings.Contains(answer.Body, "<script>\"") {
			t.Errorf("%s: got %d %s, want %d", name, answer.Status, mainPart(answer.Body), row.status)
		}
		if row.status != http.StatusSeeOther {
			continue
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(answer.Header.Get("Location"), "/console/runs/"), "?")
		if r := h.Run(t, id); r.Inputs["day"].Text() != "2027-03-01" || r.Inputs["count"] != "3" || r.Inputs["dry"] != "true" || r.Inputs["level"].Text() != `"><script>` {
			t.Errorf("got inputs %q", r.Inputs)
		}
		h.Call(t, http.MethodPost, "/v1/runs/"+id+"/cancel", "", bearer...)
		b.page("/console/runs/"+id, "2027-03-01", "&#34;&gt;&lt;script&gt;")
		b.page("/console/runs/"+id+"/changes", `name="input.day" type="text" value="2027-03-01"`)
		checked := b.post("/console/runs/"+id+"/changes", "step", "check", "input.day", "2027-03-02", "input.count", "3")
		if !strings.Contains(checked.Body, "input day") || strings.Contains(checked.Body, "input count") || !strings.Contains(checked.Body, "--input day=2027-03-02") {
			t.Errorf("got %s, want the changed input", mainPart(checked.Body))
		}
	}
}
