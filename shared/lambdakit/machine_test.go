package lambdakit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/lambdakit"
	"github.com/sortie-dev/sortie/shared/orchestrator"
	"github.com/sortie-dev/sortie/statemachines"
)

// TestFunctionsHandleTheirStates checks that every Task of the state machine is handled by
// the function that it names, and that every function has a state.
func TestFunctionsHandleTheirStates(t *testing.T) {
	t.Parallel()
	functions := steps.Handlers(&orchestrator.System{})
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = strings.ToLower(name)
	}
	text, err := statemachines.Run(names)
	if err != nil {
		t.Fatal(err)
	}
	if len(statemachines.Functions()) != len(functions) {
		t.Errorf("got functions %v of the state machine, want %d", statemachines.Functions(), len(functions))
	}
	var machine struct {
		States map[string]struct {
			Type, Resource string
			Parameters     struct{ FunctionName string }
		}
	}
	if err := json.Unmarshal([]byte(text), &machine); err != nil {
		t.Fatal(err)
	}
	for step, state := range machine.States {
		if state.Type != "Task" {
			continue
		}
		// The handler has no use case, so a known step panics. An unknown step is
		// InvalidInput.
		input := `{"tenant":"a","runId":"r","execution":"e","generation":1,"token":"t","step":"` + step + `"}`
		_, err := functions[state.Parameters.FunctionName](context.Background(), json.RawMessage(input))
		if name := lambdakit.ErrorName(err); name != "Panicked" {
			t.Errorf("%s does not handle %s: got %v", state.Parameters.FunctionName, step, err)
		}
		withoutToken := strings.Replace(input, `"token":"t",`, "", 1)
		_, err = functions[state.Parameters.FunctionName](context.Background(), json.RawMessage(withoutToken))
		waits := strings.HasSuffix(state.Resource, ".waitForTaskToken")
		if refuses := lambdakit.ErrorName(err) == "InvalidInput"; refuses != waits {
			t.Errorf("%s: got waitForTaskToken %v, but the function requires a token: %v", step, waits, refuses)
		}
	}
}
