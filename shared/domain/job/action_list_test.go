package job_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// TestListsOfActions reads the actions of an event: one, or a list of them.
func TestListsOfActions(t *testing.T) {
	t.Parallel()
	const hook = `{"type":"webhook","parameters":{"url":"https://example.org/"}}`
	for actions, want := range map[string]string{
		`{"onFailure":` + hook + `}`:                                           "",
		`{"onFailure":[` + hook + `]}`:                                         "",
		`{"onFailure":[` + hook + `,` + hook + `],"onRetry":[` + hook + `]}`:   "",
		`{"onFailure":[]}`:                                                     "actions.onFailure",
		`{"onFailure":[` + strings.Repeat(hook+",", 10) + hook + `]}`:          "actions.onFailure",
		`{"onFailure":"webhook"}`:                                              "actions.onFailure",
		`{"onSkip":[` + hook + `,{"type":"skip"}]}`:                            "actions.onSkip.1.type",
		`{"onRetry":{"type":"wait"}}`:                                          "actions.onRetry.type",
		`{"onLate":` + hook + `}`:                                              "actions.onLate",
		`{"onSuccess":[` + hook + `,{"type":"webhook","parameters":{"u":1}}]}`: "actions.onSuccess.1.parameters.u",
		`{"onConstraintViolation":[` + hook + `]}`:                             "actions.onConstraintViolation",
	} {
		_, problems := job.Parse([]byte(`{"id":"a","image":"b","actions":`+actions+`}`), nil)
		got := ""
		if len(problems) > 0 {
			got = problems[0].Field
		}
		if got != want {
			t.Errorf("%s: got %v, want a problem of %q", actions, problems, want)
		}
	}
}

// TestCanonicalFormOfActions encodes a single action as before there were lists.
func TestCanonicalFormOfActions(t *testing.T) {
	t.Parallel()
	const one = `{"id":"a","image":"b","actions":{"onFailure":{"type":"webhook","parameters":{"url":"https://example.org/?a&b"}}}}`
	for document, want := range map[string]string{
		one: one,
		`{"id":"a","image":"b","actions":{"onFailure":[{"type":"webhook","parameters":{"url":"https://example.org/?a&b"}}]}}`: one,
	} {
		d, problems := job.Parse([]byte(document), nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if text, err := d.Canonical(); err != nil || string(text) != want {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
	}
}
