package job

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

const (
	// defaultMailPort is the port of mail submission.
	defaultMailPort = 587
	maxNoticeText   = 2000
	maxReceivers    = 20
)

// mailHost matches the name or the address of a mail server.
var mailHost = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]{1,40})$`)

// noticeParameters are the parameters of notify. forServices says which of them belong to a
// service; the others belong to all.
var noticeParameters = map[string]parameter{
	"service":   {kind: noticeParameter, required: true},
	"secretRef": {kind: secretParameter},
	"text":      {kind: noticeParameter},
	"timeout":   {kind: durationParameter, least: time.Second, most: limit.HookTimeout},
	"url":       {kind: urlParameter},
	"severity":  {kind: noticeParameter},
	"host":      {kind: noticeParameter},
	"port":      {kind: noticeParameter},
	"username":  {kind: noticeParameter},
	"from":      {kind: noticeParameter},
	"to":        {kind: noticeParameter},
	"subject":   {kind: noticeParameter},
}

var forServices = map[string]spec.Service{
	"url": spec.ServicePagerDuty, "severity": spec.ServicePagerDuty, "host": spec.ServiceEmail, "port": spec.ServiceEmail,
	"username": spec.ServiceEmail, "from": spec.ServiceEmail, "to": spec.ServiceEmail, "subject": spec.ServiceEmail,
}

// service returns the service of a notify action.
func (a Action) service() spec.Service {
	text, _ := a.Parameters["service"].(string)
	return spec.Service(text)
}

// notice returns the hook of a notify action.
func (a Action) notice() *spec.Hook {
	text := func(name string) string {
		value, _ := a.Parameters[name].(string)
		return value
	}
	n := &spec.Notice{
		Service: a.service(), Text: text("text"), Severity: spec.Severity(text("severity")),
		Subject: text("subject"), Host: text("host"), Username: text("username"), From: text("from"),
	}
	if n.Service == spec.ServiceEmail {
		n.Port = a.port()
		for to := range strings.SplitSeq(text("to"), ",") {
			n.To = append(n.To, strings.TrimSpace(to))
		}
	}
	return &spec.Hook{URL: text("url"), SecretRef: text("secretRef"), Timeout: a.duration("timeout", defaultHookTime), Notice: n}
}

func (a Action) port() int {
	if port, ok := a.Parameters["port"].(float64); ok {
		return int(port)
	}
	return defaultMailPort
}

// mailServer returns the host of the mail server of the action, and its address for
// Deployment.CheckURL; empty without one.
func (a Action) mailServer() (host, address string) {
	if host, _ = a.Parameters["host"].(string); host == "" || a.Type != spec.ActionNotify {
		return "", ""
	}
	return host, guard.MailAddress(host, a.port())
}

// addresses returns what the definition calls, keyed by field: addresses, and the secrets that
// have the addresses or keys of services.
func (d Definition) addresses() iter.Seq2[string, string] {
	return func(yield func(field, address string) bool) {
		for field, address := range d.urls() {
			if !yield(field, address) {
				return
			}
		}
		for field, a := range d.actions() {
			if name, ok := a.Parameters["secretRef"].(string); ok && a.Type == spec.ActionNotify && !yield(field+".parameters.secretRef", fmt.Sprintf("%s of %s", name, a.service())) {
				return
			}
		}
	}
}

// validateNotice checks a parameter of notify, or the body of a webhook.
func validateNotice(d Definition, field string, action Action, name string, value any, p *problems) {
	text, isText := value.(string)
	switch {
	case name == "port":
		if n, ok := value.(float64); !ok || n != math.Trunc(n) || n < 1 || n > math.MaxUint16 {
			p.bad(field, "%v, want a port from 1 to %d", value, math.MaxUint16)
		}
		return
	case !isText:
		p.bad(field, "%v, want a string", value)
		return
	case name == "body":
		validateBody(d, field, text, p)
		return
	case name == "service":
		validateService(strings.TrimSuffix(field, ".service"), action, p)
		return
	}
	switch name {
	case "text", "subject":
		if len(text) > maxNoticeText {
			p.bad(field, "%d bytes, want at most %d", len(text), maxNoticeText)
		}
		checkNotice(d, field, text, p)
	case "severity":
		oneOf(p, field, spec.Severity(text), spec.Severities()...)
	case "from":
		validateAddress(field, text, p)
	case "to":
		receivers := strings.Split(text, ",")
		if len(receivers) > maxReceivers {
			p.bad(field, "%d addresses, want at most %d", len(receivers), maxReceivers)
		}
		for _, to := range receivers {
			validateAddress(field, to, p)
		}
	case "host":
		if !mailHost.MatchString(text) {
			p.bad(field, "malformed host %q of a mail server, want a name such as smtp.example.org, or an IP address", limit.Cut(text, nameLimit))
		}
	case "username":
		if text == "" || len(text) > limit.FileName || !limit.Printable(text) {
			p.bad(field, "malformed %s, want at most %d bytes without control characters", name, limit.FileName)
		}
	}
}

// validateService checks which parameters belong to the service. field is that of the parameters.
func validateService(field string, action Action, p *problems) {
	service := action.service()
	if !slices.Contains(spec.Services(), service) {
		p.bad(field+".service", "unknown service %q, want one of %s", limit.Cut(string(service), nameLimit), list(spec.Services()))
		return
	}
	needs := []string{"secretRef"}
	if service == spec.ServiceEmail {
		needs = []string{"host", "from", "to"}
		if _, signsIn := action.Parameters["username"]; signsIn {
			needs = append(needs, "secretRef")
		}
	}
	for _, name := range needs {
		if text, _ := action.Parameters[name].(string); text == "" {
			p.bad(field+"."+name, "missing parameter of %s with the service %s", action.Type, service)
		}
	}
	for name, of := range forServices {
		if _, given := action.Parameters[name]; given && of != service {
			p.addConflict(field+"."+name, "no meaning with the service %s, only with %s; leave it out", service, of)
		}
	}
}

func validateAddress(field, text string, p *problems) {
	if _, err := mail.ParseAddress(text); err != nil || len(text) > limit.FileName || !limit.Printable(text) {
		p.bad(field, "malformed address %q, want one such as ops@example.org", limit.Cut(text, nameLimit))
	}
}

// validateBody checks the template of the body of a webhook: JSON with values in its strings.
func validateBody(d Definition, field, text string, p *problems) {
	if len(text) > limit.HookTemplate {
		p.bad(field, "%d bytes, want at most %d", len(text), limit.HookTemplate)
	}
	checkNotice(d, field, text, p)
	sample, _ := spec.Expand(text, func(string) (string, bool) { return "x", true })
	if !json.Valid([]byte(sample)) {
		p.bad(field, `malformed JSON, want a document with templates inside of its strings, such as {"text": "{{jobId}}"}`)
	}
}

// checkNotice checks the names in a template of a notice.
func checkNotice(d Definition, field, text string, p *problems) {
	_, unknown := spec.Expand(text, func(name string) (string, bool) {
		if input, ok := strings.CutPrefix(name, spec.InputPrefix); ok {
			_, ok = d.Inputs[input]
			return "", ok
		}
		return "", slices.Contains(spec.NoticeNames(), name)
	})
	for _, name := range unknown {
		p.bad(field, "unknown name in {{%s}}, want one of %s, or the name of an input", limit.Cut(name, nameLimit), strings.Join(spec.NoticeNames(), ", "))
	}
}
