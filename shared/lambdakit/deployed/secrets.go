package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/api"
	"github.com/sortie-dev/sortie/shared/app/hooks"
	"github.com/sortie-dev/sortie/shared/hook"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/shared/port"
)

// Secrets returns the named secrets of the stage.
func Secrets(p *process.Process) port.Secrets {
	return secrets.OpenNamed(p.AWS(), p.Stage, p.Clock())
}

// Hooks returns a caller of the hooks of jobs. It signs with the named secrets of the stage.
func Hooks(p *process.Process, config orchestrator.Config) orchestrator.Hooks {
	client := hook.New(hook.Config{Policy: config.Hooks, Clock: p.Clock()})
	return hooks.NewCalls(client, Secrets(p), api.HookBody, p.Log)
}
