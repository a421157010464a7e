package deployed

import (
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// Secrets returns the named secrets of the stage.
func Secrets(p *process.Process) port.Secrets {
	return secrets.OpenNamed(p.AWS(), p.Stage, p.Clock())
}
