// Package hooks calls the hooks of jobs over HTTPS, before and after their runs.
package hooks

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/shared/app/about"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Call is the content of the request body of a hook.
type Call struct {
	Run run.Run
	// Reason is the constraint, or a spec.EndAction.
	Reason string
	// Asks: the answer of the hook decides about the run. Otherwise the call is a notification.
	Asks bool
}

// Body encodes a call as a JSON document.
type Body func(Call) ([]byte, error)

// Calls calls the hooks of jobs over HTTPS. It implements
// runs.Hooks.
type Calls struct {
	client  *hook.Client
	secrets port.Secrets
	body    Body
	pages   string
	log     *slog.Logger
}

// NewCalls returns Calls that send with a client and sign with the secrets of the jobs. publicURL
// is the address of the deployment, for links to runs; empty for no links.
func NewCalls(client *hook.Client, secrets port.Secrets, body Body, publicURL string, log *slog.Logger) *Calls {
	if publicURL != "" {
		publicURL = strings.TrimSuffix(publicURL, "/") + "/console/runs/"
	}
	return &Calls{client, secrets, body, publicURL, log}
}

// Ask implements runs.Hooks.
func (s *Calls) Ask(ctx context.Context, r run.Run, h spec.Hook, of spec.Constraint) (spec.HookAnswer, error) {
	answer, err := s.call(ctx, h, Call{Run: r, Reason: string(of), Asks: true})
	if err != nil {
		return spec.HookAnswer{}, err
	}
	return spec.HookAnswer{
		Allowed: answer.Verdict == hook.Allowed, Unavailable: answer.Verdict == hook.Unavailable, Detail: answer.Detail,
	}, nil
}

// Notify implements runs.Hooks.
func (s *Calls) Notify(ctx context.Context, r run.Run, h spec.Hook, reason string) (answer, failure string, err error) {
	a, err := s.call(ctx, h, Call{Run: r, Reason: reason})
	switch {
	case err != nil || a.Verdict == hook.Allowed:
		return a.Detail, "", err
	case a.Verdict == hook.Unavailable && a.Tries > 0:
		return "", "", &hook.Untaken{Detail: a.Detail}
	}
	return "", a.Detail, nil
}

func (s *Calls) call(ctx context.Context, h spec.Hook, c Call) (answer hook.Answer, err error) {
	if h.Notice != nil && h.Notice.Service != "" {
		answer, err = s.notice(ctx, h, c)
	} else {
		answer, err = s.post(ctx, h, c)
	}
	if err != nil {
		return hook.Answer{}, err
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "a hook was called", append(about.Run(&c.Run), slog.String("reason", c.Reason),
		slog.String("verdict", string(answer.Verdict)), slog.Int("status", answer.Status), slog.Int("tries", answer.Tries),
		slog.String("detail", answer.Detail))...)
	return answer, nil
}

// post calls the address of a hook or webhook.
func (s *Calls) post(ctx context.Context, h spec.Hook, c Call) (hook.Answer, error) {
	body, err := s.body(c)
	if h.Notice != nil {
		body = []byte(notice{*h.Notice, c.Run, spec.EndAction(c.Reason), s.pages}.text(h.Notice.Body, inJSON))
	}
	if err != nil {
		return hook.Answer{}, fmt.Errorf("cannot encode the request of the hook: %w", err)
	}
	key, problem, err := s.key(ctx, c.Run.Tenant, h.SecretRef)
	if err != nil || problem != "" {
		return hook.Answer{Verdict: hook.Unavailable, Detail: problem}, err
	}
	return sent(s.client.Post(ctx, hook.Message{
		URL: h.URL, Headers: h.Headers, Body: body, Key: key, ID: c.Run.TaskID + "-" + c.Reason, Timeout: h.Timeout,
	}))
}

// sent wraps the error of a client.
func sent(answer hook.Answer, err error) (hook.Answer, error) {
	if err != nil {
		return hook.Answer{}, fault.Wrap(err, fault.Unavailable, "a hook was not called")
	}
	return answer, nil
}

// key returns the key of a hook's secret; zero without a name. problem is the reason that the
// secret is unusable.
func (s *Calls) key(ctx context.Context, tenant, name string) (key hook.Key, problem string, err error) {
	text, problem, err := s.text(ctx, tenant, name)
	if err != nil || problem != "" || name == "" {
		return key, problem, err
	}
	if key, err = hook.ParseKey(text); err != nil {
		return key, fmt.Sprintf("secretRef: %q: %v", name, err), nil
	}
	return key, "", nil
}
