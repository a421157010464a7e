package job_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// TestNotifyParameters checks what each service needs and takes.
func TestNotifyParameters(t *testing.T) {
	t.Parallel()
	const mail = `"service":"email","host":"smtp.example.org","from":"a@example.org","to":"b@example.org"`
	for parameters, want := range map[string]string{
		`"service":"slack","secretRef":"url"`:                                                                          "",
		`"service":"teams","secretRef":"url","text":"{{jobId}} {{inputs.day}}"`:                                        "",
		`"service":"pagerduty","secretRef":"key","severity":"info","url":"https://events.eu.pagerduty.com/v2/enqueue"`: "",
		mail: "",
		mail + `,"username":"u","secretRef":"p","port":465,"subject":"{{event}}"`: "",
		`"secretRef":"url"`:                                                           "service",
		`"service":"irc","secretRef":"url"`:                                           "service",
		`"service":"slack"`:                                                           "secretRef",
		`"service":"slack","secretRef":"url","to":"a@example.org"`:                    "to",
		`"service":"slack","secretRef":"url","url":"https://example.org"`:             "url",
		`"service":"slack","secretRef":"url","text":"{{password}}"`:                   "text",
		`"service":"slack","secretRef":"url","text":"{{inputs.none}}"`:                "text",
		`"service":"pagerduty","secretRef":"key","severity":"loud"`:                   "severity",
		mail + `,"username":"u"`:                                                      "secretRef",
		mail + `,"port":0`:                                                            "port",
		mail + `,"port":"587"`:                                                        "port",
		`"service":"email","host":"smtp.example.org","from":"a","to":"b@example.org"`: "from",
		`"service":"email","host":"smtp.example.org","from":"a@example.org","to":"b@example.org, c\nd@e.org"`: "to",
		`"service":"email","host":"a b","from":"a@example.org","to":"b@example.org"`:                          "host",
		`"service":"email","host":"smtp://a","from":"a@example.org","to":"b@example.org"`:                     "host",
		`"service":"email","host":"a:25:","from":"a@example.org","to":"b@example.org"`:                        "",
		`"service":"email","host":"::1","from":"a@example.org","to":"b@example.org"`:                          "",
		`"service":"email","from":"a@example.org","to":"b@example.org"`:                                       "host",
	} {
		document := `{"id":"a","image":"b","inputs":{"day":{"default":"x"}},"actions":{"onFailure":{"type":"notify","parameters":{` + parameters + `}}}}`
		_, problems := job.Parse([]byte(document), nil)
		got := ""
		if len(problems) > 0 {
			got = problems[0].Field
		}
		if want != "" {
			want = "actions.onFailure.parameters." + want
		}
		if got != want {
			t.Errorf("%s: got %v, want a problem of %q", parameters, problems, want)
		}
	}
}

// TestBodyOfAWebhook checks templates of JSON.
func TestBodyOfAWebhook(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		`{\"text\": \"{{jobId}} {{message}}\"}`: true, `{\"attempt\": {{attempt}}}`: false, `plain {{jobId}}`: false, `{\"a\": \"{{none}}\"}`: false,
	} {
		document := `{"id":"a","image":"b","actions":{"onRetry":{"type":"webhook","parameters":{"url":"https://example.org","body":"` + body + `"}}}}`
		if _, problems := job.Parse([]byte(document), nil); (len(problems) == 0) != ok {
			t.Errorf("%s: got %v, want accepted %v", body, problems, ok)
		}
	}
}

// TestNewAddresses names what a client needs webhooks:write for.
func TestNewAddresses(t *testing.T) {
	t.Parallel()
	parse := func(parameters string) job.Definition {
		d, problems := job.Parse([]byte(`{"id":"a","image":"b","actions":{"onFailure":{"type":"notify","parameters":{`+parameters+`}}}}`), nil)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return d
	}
	slack, other := parse(`"service":"slack","secretRef":"url"`), parse(`"service":"slack","secretRef":"other"`)
	mail := parse(`"service":"email","host":"smtp.example.org","from":"a@example.org","to":"b@example.org"`)
	for _, row := range []struct {
		before, after job.Definition
		want          string
	}{
		{job.Definition{}, slack, "actions.onFailure.parameters.secretRef"},
		{slack, slack, ""},
		{slack, other, "actions.onFailure.parameters.secretRef"},
		{slack, mail, "actions.onFailure.parameters.host"},
		{mail, mail, ""},
	} {
		if got := row.after.NewAddress(row.before); got != row.want {
			t.Errorf("got the new address %q, want %q", got, row.want)
		}
	}
}
