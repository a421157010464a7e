package lambdakit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/steps"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit"
	"github.com/sortie-dev/sortie/statemachines"
)

// task is a Task state of the state machine.
type task struct {
	// Function is the step function that the state calls.
	Function string
	// Waits reports whether the state waits for a task token.
	Waits bool
}

// tasks returns the Task states of the state machine.
func tasks(t *testing.T) map[run.Step]task {
	t.Helper()
	names := map[string]string{}
	for _, name := range statemachines.Functions() {
		names[name] = strings.ToLower(name)
	}
	text, err := statemachines.Run(names)
	if err != nil {
		t.Fatal(err)
	}
	var machine struct {
		States map[run.Step]struct {
			Type, Resource string
			Parameters     struct{ FunctionName string }
		}
	}
	if err := json.Unmarshal([]byte(text), &machine); err != nil {
		t.Fatal(err)
	}
	tasks := map[run.Step]task{}
	for step, state := range machine.States {
		if state.Type == "Task" {
			tasks[step] = task{state.Parameters.FunctionName, strings.HasSuffix(state.Resource, ".waitForTaskToken")}
		}
	}
	return tasks
}

// TestFunctionsHandleTheirStates checks that every Task of the state machine is handled by
// the function that it names, and that every function has a state.
func TestFunctionsHandleTheirStates(t *testing.T) {
	t.Parallel()
	functions := steps.Handlers(&app.System{})
	if len(statemachines.Functions()) != len(functions) {
		t.Errorf("got functions %v of the state machine, want %d", statemachines.Functions(), len(functions))
	}
	for step, task := range tasks(t) {
		// The use cases are nil, so a known step panics. An unknown step returns InvalidInput.
		input := `{"tenant":"a","runId":"r","execution":"e","generation":1,"token":"t","step":"` + string(step) + `"}`
		_, err := functions[task.Function](context.Background(), json.RawMessage(input))
		if name := lambdakit.ErrorName(err); name != "Panicked" {
			t.Errorf("%s does not handle %s: got %v", task.Function, step, err)
		}
		withoutToken := strings.Replace(input, `"token":"t",`, "", 1)
		_, err = functions[task.Function](context.Background(), json.RawMessage(withoutToken))
		if refuses := lambdakit.ErrorName(err) == "InvalidInput"; refuses != task.Waits {
			t.Errorf("%s: got waitForTaskToken %v, but the function requires a token: %v", step, task.Waits, refuses)
		}
	}
}
