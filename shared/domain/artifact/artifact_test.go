package artifact_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/artifact"
)

func TestIDIsOfTheCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, content, canonical, id string }{
		{"object", " {\"b\": 1.0, \"a\": [ \"\\u017e\" ] } ", `{"a":["ž"],"b":1}`, "e3ce7d8a09a8"},
		{"text", ` "a" `, `"a"`, "ac8d8342bbb2362d13f0a559a3621bb407011368895164b628a54f7fc33fc43c"},
		{"null", "null", "null", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"},
	} {
		canonical, id, err := artifact.Canonical([]byte(row.content))
		if err != nil || string(canonical) != row.canonical || len(row.id) == 64 && id != row.id || !artifact.ValidID(id) {
			t.Errorf("%s: got %s %s, %v, want %s %s", row.name, canonical, id, err, row.canonical, row.id)
		}
	}
	for _, content := range []string{"", "{", "1,2", "1e999", `{"a":1,"a":2}`} {
		if canonical, _, err := artifact.Canonical([]byte(content)); err == nil {
			t.Errorf("%s: got %s, want an error", content, canonical)
		}
	}
}

func TestCollect(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const retention = time.Hour
	for _, row := range []struct {
		name    string
		a       artifact.Artifact
		want    artifact.State
		expires time.Time
		changed bool
	}{
		{"not expired", artifact.Artifact{State: artifact.Stored, ExpiresAt: now.Add(1)}, artifact.Stored, now.Add(1), false},
		{"expired", artifact.Artifact{State: artifact.Stored, ExpiresAt: now}, artifact.Removing, now, true},
		{"parent", artifact.Artifact{State: artifact.Stored, ExpiresAt: now, Children: 1}, artifact.Stored, now.Add(retention), true},
		{"never written", artifact.Artifact{State: artifact.Writing, ExpiresAt: now}, artifact.Removing, now, true},
		{"removing", artifact.Artifact{State: artifact.Removing, ExpiresAt: now}, artifact.Removing, now, false},
	} {
		if got, changed := row.a.Collect(now, retention); got.State != row.want || !got.ExpiresAt.Equal(row.expires) || changed != row.changed {
			t.Errorf("%s: got %+v %v, want %s until %s, %v", row.name, got, changed, row.want, row.expires, row.changed)
		}
	}
}

func TestFilterUsesAListOfTheArtifact(t *testing.T) {
	t.Parallel()
	a := artifact.Artifact{State: artifact.Stored, Kind: "trace", Tags: []string{"sse", "task:inf_1"}, Parent: "p"}
	for _, f := range []artifact.Filter{{}, {Kind: "trace"}, {Tag: "task:inf_1"}, {Parent: "p"}, {Kind: "trace", Tag: "sse", Parent: "p"}} {
		if !f.Selects(a) || !slices.Contains(a.Labels(), f.Label()) {
			t.Errorf("%+v: got %v, label %q of %q, want it selected", f, f.Selects(a), f.Label(), a.Labels())
		}
	}
	for _, f := range []artifact.Filter{{Kind: "other"}, {Tag: "task"}, {Parent: "q"}, {Kind: "other", Tag: "sse"}} {
		if f.Selects(a) {
			t.Errorf("%+v: got it selected", f)
		}
	}
	a.State = artifact.Writing
	if len(a.Labels()) != 0 || (artifact.Filter{}).Selects(a) {
		t.Errorf("got the labels %q of an artifact that is being written, want none", a.Labels())
	}
}
