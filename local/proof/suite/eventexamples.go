package suite

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	"github.com/sortie-dev/sortie/events/examples"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func eventExamples() []Test {
	return []Test{{
		Name: "examples of events are published ones", Requires: []Capability{ScriptedWorkers, Programs, Hooks, Faults}, Exclusive: true, NeedsAll: true, Run: examplesArePublished,
	}}
}

// unpublished maps event types that no test of the suite causes to the reason. The tests of
// package api compare their examples with events that it makes from the same facts.
var unpublished = map[eventtype.Type]string{
	eventtype.WebhookTest:     "it is in no stream: the test of webhooks compares it",
	eventtype.RelayUnreadable: "a change that cannot be read has to be written into the store",
	eventtype.Restarted:       "an execution has to be lost",
	eventtype.Orphaned:        "an execution has to be lost twice",
	eventtype.ZombieDetected:  "a worker has to be silent for longer than its heartbeat timeout",
}

// examplesArePublished reads all events that the earlier tests have caused. The example of each
// type must have the form of one of them.
func examplesArePublished(c *Case) {
	forms := map[eventtype.Type]publishedForms{}
	for after := "earliest"; ; {
		page := outside.Get[contract.EventPage](c.Client, "/v1/events?"+url.Values{"after": {after}, "limit": {"1000"}}.Encode())
		for _, document := range page.Events {
			t := envelope(c.Client, document).EventType
			if forms[t] == nil {
				forms[t] = publishedForms{}
			}
			form := formOf(c, document)
			forms[t][form] = append(forms[t][form], document)
		}
		if page.Next == after {
			break
		}
		after = page.Next
	}
	for _, info := range eventtype.All() {
		switch published, reason := forms[info.Type], unpublished[info.Type]; {
		case len(published) > 0:
			c.compareExample(info.Type, published)
		case reason == "" && !c.skips(info.Type):
			c.T.Errorf("%s: got no event, want one of a test, or a reason", info.Type)
		}
	}
}

// skips reports whether the target cannot run the tests that cause a type.
func (c *Case) skips(t eventtype.Type) bool {
	_, _, lacks := c.Target.lacks([]Capability{ShortWindows})
	return lacks && t == eventtype.ScheduleSkipped
}

// publishedForms are the events of a type, grouped by form.
type publishedForms map[string][]json.RawMessage

// usual returns the most frequent form.
func (p publishedForms) usual() string {
	return slices.MaxFunc(slices.Sorted(maps.Keys(p)), func(a, b string) int { return cmp.Compare(len(p[a]), len(p[b])) })
}

// compareExample compares the example of a type with the events of that type, by form. If the
// target has a folder for examples, it writes an event of the usual form.
func (c *Case) compareExample(t eventtype.Type, published publishedForms) {
	c.T.Helper()
	name := string(t) + ".json"
	example, err := examples.Files.ReadFile(name)
	if err != nil {
		c.T.Fatal(err)
	}
	form, usual := formOf(c, example), published.usual()
	if c.Target.Examples == "" {
		if len(published[form]) == 0 {
			c.T.Errorf("%s: got the form\n%s\nof the example, want that of a published event, such as\n%s", t, form, usual)
		}
		return
	}
	if form == usual {
		return
	}
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(renamed(c, published[usual][0])), "", "  "); err != nil {
		c.T.Fatal(err)
	}
	text.WriteByte('\n')
	if err := os.WriteFile(filepath.Join(c.Target.Examples, name), text.Bytes(), 0o600); err != nil {
		c.T.Fatal(err)
	}
}

// renamed returns an event with names of a user instead of the suite's.
func renamed(c *Case, document []byte) string {
	e := envelope(c.Client, document)
	text := host.ReplaceAllString(string(document), "https://sortie.example.org")
	text = strings.NewReplacer("-"+c.round, "", "."+c.round, "").Replace(text)
	if e.Job == nil {
		return text
	}
	for _, name := range [][2]string{{e.Job.DefinitionID, "nightly"}, {e.Job.BatchID, "2026-03"}} {
		if name[0] != "" {
			text = strings.ReplaceAll(text, name[0], name[1])
		}
	}
	return text
}

// The parts of values that differ between events, with their replacements.
var (
	host  = regexp.MustCompile(`https?://[^/"\s]+`)
	parts = []struct {
		*regexp.Regexp
		as string
	}{
		{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "DIGEST"},
		{host, "HOST"},
		{regexp.MustCompile(`^HOST/.*/download/`), "HOST/download/"},
		{regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`), "UUID"},
		{regexp.MustCompile(`export_[a-z]+_\d+_[0-9a-f]+`), "ID"},
		{regexp.MustCompile(`[0-7][0-9A-HJKMNP-TV-Z]{25}`), "ULID"},
	}
)

// The fields whose values are names or texts of a deployment and its users.
var (
	names = []string{"batchId", "correlationId", "definitionId", "id", "jobId", "leaseId", "projectId", "runId", "taskRunnerId", "tenantId"}
	texts = []string{"data", "errorMessage", "fileName", "message", "reason"}
)

// formOf returns an event without the parts that differ between two events of the same kind.
// The form has the fields, the forms of ids, keys and addresses, and the values of closed
// lists. An event that keeps the state of a run may be published in any state, because a worker
// may call before or after its machine is seen running.
func formOf(c *Case, document []byte) string {
	c.T.Helper()
	var fields map[string]any
	if err := json.Unmarshal(document, &fields); err != nil {
		c.T.Fatal(err)
	}
	own := map[string]string{}
	for _, part := range []string{"job", "schedule", "policy"} {
		about, _ := fields[part].(map[string]any)
		for _, name := range names {
			if value, ok := about[name].(string); ok && value != "" {
				own[value] = "ID"
			}
		}
	}
	if job, ok := fields["job"].(map[string]any); ok && job["state"] != nil && job["from"] == job["state"] {
		job["from"], job["state"] = "STATE", "STATE"
	}
	form, err := json.MarshalIndent(formOfValue("", fields, own), "", " ")
	if err != nil {
		c.T.Fatal(err)
	}
	return string(form)
}

func formOfValue(field string, value any, own map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		form := map[string]any{}
		for name, value := range v {
			form[name] = formOfValue(name, value, own)
		}
		return form
	case []any:
		if field == "scopes" {
			return "SCOPES"
		}
		form := make([]any, len(v))
		for i, value := range v {
			form[i] = formOfValue(field, value, own)
		}
		return form
	case float64:
		return "NUMBER"
	case string:
		return formOfText(field, v, own)
	}
	return value
}

func formOfText(field, text string, own map[string]string) string {
	switch {
	case slices.Contains(names, field):
		return "ID"
	case slices.Contains(texts, field):
		return "TEXT"
	case field == "subject":
		kind, _, _ := strings.Cut(text, "/")
		return kind
	case field == "idempotencyKey":
		return formOfKey(text, own)
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return "TIME"
	}
	for _, part := range parts {
		text = part.ReplaceAllString(text, part.as)
	}
	return text
}

// The variable parts of keys: numbers, and creation times of resources.
var (
	number  = regexp.MustCompile(`-\d+`)
	created = regexp.MustCompile(`/\d+-`)
)

// formOfKey returns the form of an idempotency key, orch-{type}-{rest}. own has the ids of the
// event.
func formOfKey(key string, own map[string]string) string {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(key, "orch-"), "-") // no type contains "-"
	ids := slices.SortedFunc(maps.Keys(own), func(a, b string) int { return len(b) - len(a) })
	for _, id := range ids {
		rest = strings.ReplaceAll(rest, id, "ID")
	}
	for _, part := range parts {
		rest = part.ReplaceAllString(rest, part.as)
	}
	return "orch-" + kind + "-" + number.ReplaceAllString(created.ReplaceAllString(rest, "/N-"), "-N")
}

// checkTestEvent compares the example of webhook.test with an event that a receiver got.
func (c *Case) checkTestEvent(e events.Envelope) {
	c.T.Helper()
	document, err := json.Marshal(e)
	if err != nil {
		c.T.Fatal(err)
	}
	c.compareExample(eventtype.WebhookTest, publishedForms{formOf(c, document): {document}})
}
