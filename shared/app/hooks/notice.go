package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// pagerDuty is the address of the Events API v2 of PagerDuty, outside of its region in the EU.
const pagerDuty = "https://events.pagerduty.com/v2/enqueue"

// The longest texts in bytes: of a message, and of the summary that PagerDuty takes.
const (
	maxText    = 3000
	maxSummary = 1024
)

// notice is a notification about an action of a run.
type notice struct {
	spec.Notice
	run    run.Run
	action spec.EndAction
	pages  string
}

// text returns a template with its values, each changed by quote.
func (n notice) text(template string, quote func(string) string) string {
	text, _ := spec.Expand(template, func(name string) (string, bool) {
		value, known := n.run.NoticeValue(name, n.action, n.pages)
		return quote(value), known
	})
	return strings.TrimSpace(text)
}

func same(text string) string { return text }

// inJSON returns the text as the inside of a string of JSON.
func inJSON(text string) string {
	quoted := encoded(text)
	return string(quoted[1 : len(quoted)-1])
}

// encoded returns a value as JSON without escapes for HTML.
func encoded(value any) []byte {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) //nolint:errchkjson // strings and numbers always have a JSON form
	return bytes.TrimSpace(to.Bytes())
}

// message returns the text of the notice.
func (n notice) message(quote func(string) string) string {
	template := n.Text
	if template == "" {
		template = spec.DefaultText
	}
	return limit.Cut(n.text(template, quote), maxText)
}

// good reports whether the event is a success.
func (n notice) good() bool {
	event, _ := n.action.Event()
	return event == spec.OnSuccess
}

type object = map[string]any

// facts are the details that services show beside the text, with their names.
func (n notice) facts() [][2]string {
	facts := [][2]string{{"Job", n.run.JobID}, {"Run", n.run.ID}, {"State", string(n.run.State)}, {"Attempt", fmt.Sprint(n.run.Attempt.Number)}}
	if at := n.run.Scheduled(); !n.run.ScheduledAt.IsZero() {
		facts = append(facts, [2]string{"Scheduled", at.Format(time.RFC3339)})
	}
	return facts
}

// slack returns the message of an incoming webhook.
func (n notice) slack() []byte {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	var fields []object
	for _, fact := range n.facts() {
		fields = append(fields, object{"type": "mrkdwn", "text": "*" + fact[0] + "*\n" + escape(fact[1])})
	}
	text := n.message(escape)
	return encoded(object{"text": text, "blocks": []object{
		{"type": "section", "text": object{"type": "mrkdwn", "text": text}},
		{"type": "section", "fields": fields},
	}})
}

// teams returns the message of a webhook of a workflow: an adaptive card.
func (n notice) teams() []byte {
	var facts []object
	for _, fact := range n.facts() {
		facts = append(facts, object{"title": fact[0], "value": fact[1]})
	}
	color := "attention"
	if n.good() {
		color = "good"
	}
	card := object{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"body": []object{
			{"type": "TextBlock", "text": n.message(same), "wrap": true, "weight": "bolder", "color": color},
			{"type": "FactSet", "facts": facts},
		},
	}
	return encoded(object{"type": "message", "attachments": []object{
		{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card},
	}})
}

// pagerDuty returns an event of the Events API v2. A success resolves the incident of the job.
func (n notice) pagerDuty(routingKey string) []byte {
	event := object{"routing_key": routingKey, "dedup_key": limit.Cut("sortie/"+n.run.Tenant+"/"+n.run.JobID, 255), "event_action": "trigger"}
	if n.good() {
		event["event_action"] = "resolve"
		return encoded(event)
	}
	severity := n.Severity
	if severity == "" {
		severity = "error"
	}
	details := object{}
	for _, fact := range n.facts() {
		details[strings.ToLower(fact[0])] = fact[1]
	}
	event["client"] = "Sortie"
	event["payload"] = object{
		"summary": limit.Cut(n.message(same), maxSummary), "source": "sortie", "severity": string(severity),
		"component": n.run.JobID, "class": string(n.action), "custom_details": details,
	}
	if n.pages != "" {
		event["client_url"] = n.pages + n.run.TaskID
	}
	return encoded(event)
}

// mail returns the e-mail of the notice.
func (n notice) mail(password, id string, timeout time.Duration) hook.Mail {
	subject := n.Subject
	if subject == "" {
		subject = spec.DefaultSubject
	}
	text := n.message(same) + "\n"
	for _, fact := range n.facts() {
		text += "\n" + fact[0] + ": " + fact[1]
	}
	return hook.Mail{
		Host: n.Host, Port: n.Port, Username: n.Username, Password: password, From: n.From, To: n.To,
		Subject: limit.Cut(n.text(subject, same), limit.FileName), Text: text + "\n", ID: id, Timeout: timeout,
	}
}

// notice sends a notification to a service.
func (s *Calls) notice(ctx context.Context, h spec.Hook, c Call) (answer hook.Answer, err error) {
	n := notice{*h.Notice, c.Run, spec.EndAction(c.Reason), s.pages}
	secret, problem, err := s.text(ctx, c.Run.Tenant, h.SecretRef)
	if err != nil || problem != "" {
		return hook.Answer{Verdict: hook.Unavailable, Detail: problem}, err
	}
	m := hook.Message{URL: strings.TrimSpace(secret), ID: c.Run.TaskID + "-" + c.Reason, Timeout: h.Timeout}
	switch n.Service {
	case spec.ServiceSlack:
		m.Body = n.slack()
	case spec.ServiceTeams:
		m.Body = n.teams()
	case spec.ServicePagerDuty:
		m.URL, m.Body = h.URL, n.pagerDuty(strings.TrimSpace(secret))
		if m.URL == "" {
			m.URL = pagerDuty
		}
	case spec.ServiceEmail:
		return sent(s.client.Mail(ctx, n.mail(secret, m.ID, h.Timeout)))
	}
	return sent(s.client.Post(ctx, m))
}

// text returns the value of a secret; empty without a name. problem is the reason that there is
// none.
func (s *Calls) text(ctx context.Context, tenant, name string) (text, problem string, err error) {
	if name == "" {
		return "", "", nil
	}
	text, err = s.secrets.Secret(ctx, tenant, name)
	switch {
	case errors.Is(err, port.ErrNotFound):
		return "", fmt.Sprintf("secretRef: unknown secret %q", name), nil
	case err != nil:
		return "", "", fmt.Errorf("cannot read the secret of the hook: %w", err)
	}
	return text, "", nil
}
