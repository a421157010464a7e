package stack

import (
	"strings"

	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
)

// Functions returns the handlers of the step functions. Keys are the names in
// statemachines.Functions.
func Functions(system *app.System) map[string]lambdakit.TaskFunc {
	functions := map[string]lambdakit.TaskFunc{}
	for name, handler := range steps.Handlers(system) {
		functions[strings.ToUpper(name[:1])+name[1:]] = handler
	}
	return functions
}
