// Package executions makes the Executions of a deployed function: those of the
// state machine.
package executions

import (
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// New reads SORTIE_STATE_MACHINE, an ARN.
func New(p *process.Process) port.Executions {
	executions, err := stepfunctions.New(p.AWS(), p.Need("SORTIE_STATE_MACHINE"))
	p.Check(err)
	return executions
}
