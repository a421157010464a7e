package runs_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestProgramOfTheHostNeedsTheScopeExec retries a run of a program of the host, and stores
// pools whose machines run one: with the scope exec, with all other scopes, and without a
// token.
func TestProgramOfTheHostNeedsTheScopeExec(t *testing.T) {
	t.Parallel()
	anonymous, ordinary, owner := client, client, client
	anonymous.Anonymous = true
	anonymous.Scopes, ordinary.Scopes, owner.Scopes = access.Ordinary(), access.Ordinary(), access.Scopes()
	for name, row := range map[string]struct {
		who  port.Identity
		want fault.Code
	}{
		"without a token":   {anonymous, fault.RunnerNotAllowed},
		"without the scope": {ordinary, fault.MissingScope},
		"with the scope":    {owner, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := keeping(t, func(c *runs.Config) { c.Host.Exec = true })
			for door, use := range h.hostDoors(row.who) {
				err := use()
				if row.want == "" && err != nil || row.want != "" && !fault.Is(err, row.want) {
					t.Errorf("%s: got %v, want %q", door, err, row.want)
				}
			}
		})
	}
}

// hostDoors returns the calls, other than a submission, with which a caller starts a program of
// the host.
func (h *fixture) hostDoors(who port.Identity) map[string]func() error {
	h.Helper()
	const program = "exec:/bin/true"
	j, err := h.store.LoadJob(h.Context(), client.Tenant, h.createJob("host", "").ID)
	h.ok(err)
	j.Definition.Image, j.Exec = program, true
	j.Version++
	h.ok(h.store.SaveJob(h.Context(), j))
	task := h.post()
	h.succeed(task)
	r := h.record(task)
	r.Work = spec.Work{Kind: spec.KindJob, Image: program, Program: &spec.Program{}}
	h.ok(h.store.Commit(h.Context(), port.Write{Run: r}))
	put := func(id string, d pools.Definition) error {
		_, _, err := h.service.Pools.Put(h.Context(), who, id, d, change.Precondition{})
		return err
	}
	return map[string]func() error{
		"a retry": func() error {
			_, _, err := h.service.Retry(h.Context(), runs.RetryRequest{Identity: who, TaskID: task})
			return err
		},
		"warm machines": func() error {
			return put("warm", pools.Definition{Limit: 1, Warm: &platform.Warm{Min: 1, Max: 1, Image: program}})
		},
		"replicas": func() error {
			place := platform.EnginePlace{Kind: platform.EngineLlamaCpp, Model: "one", Slots: 2, Machines: &platform.EngineMachines{Job: "host", Count: 1, Port: 8080}}
			return put("own", pools.Definition{Limit: place.Limit(), Engine: &place})
		},
	}
}
