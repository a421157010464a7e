package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/app/hooks"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// Secrets returns the named secrets of the stage.
func Secrets(p *process.Process) port.Secrets {
	return secrets.OpenNamed(p.AWS(), p.Stage, p.Clock())
}

// JobSettings returns the settings of a process that stores jobs: it warns of named secrets that
// the stage does not have.
func JobSettings(p *process.Process) runs.Config {
	config := p.Settings()
	config.HasSecret = secrets.OpenNamed(p.AWS(), p.Stage, p.Clock()).Has
	return config
}

// Hooks returns a caller of the hooks of jobs. It signs with the named secrets of the stage.
func Hooks(p *process.Process, config runs.Config) runs.Hooks {
	client := hook.New(hook.Config{Policy: config.Hooks, Clock: p.Clock()})
	return hooks.NewCalls(client, Secrets(p), api.HookBody, config.PublicURL, p.Log)
}
