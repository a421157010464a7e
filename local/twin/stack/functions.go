package stack

import (
	"github.com/sortie-dev/sortie/functions/act"
	"github.com/sortie-dev/sortie/functions/admit"
	"github.com/sortie-dev/sortie/functions/constrain"
	"github.com/sortie-dev/sortie/functions/launch"
	"github.com/sortie-dev/sortie/functions/supervise"
	"github.com/sortie-dev/sortie/functions/terminate"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Functions are the handlers that the state machine of a run calls, by the
// names that statemachines.Functions has for them.
func Functions(service *orchestrator.Service) map[string]lambdakit.TaskFunc {
	return map[string]lambdakit.TaskFunc{
		"Admit": admit.Handler(service), "Constrain": constrain.Handler(service), "Act": act.Handler(service),
		"Launch": launch.Handler(service), "Supervise": supervise.Handler(service), "Terminate": terminate.Handler(service),
	}
}
